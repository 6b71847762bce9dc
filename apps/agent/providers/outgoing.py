"""Where a model's base URL may lead (SA-3): public addresses over https, and what the operator's networks add.

Pure rules. Names are resolved and checked when a connection is opened, by `transport`: what a name means at any other time says nothing.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import SplitResult, urlsplit

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# An address of these carries an IPv4 address, and leads there.
_NAT64 = ip_network("64:ff9b::/96")
_COMPATIBLE = ip_network("::/96")
# Public by their number, and none of the Internet's: the inner side of a cloud, translation, relays, what was retired.
_INNER: tuple[Network, ...] = tuple(
    ip_network(network)
    for network in (
        "168.63.129.16/32",
        "192.0.0.0/24",
        "192.88.99.0/24",
        "64:ff9b:1::/48",
        "fec0::/10",
        "2001::/23",
        "5f00::/16",
    )
)


class Forbidden(Exception):
    """The address is none that this installation may call. The text names what is wrong, and no more."""


def check_url(url: str, networks: Sequence[Network]) -> None:
    """What can be told of a base URL without asking for its host. Raises Forbidden."""
    parts = _parts(url)
    if parts.username is not None or parts.password is not None:
        raise Forbidden("The address holds a user name or a password.")
    if parts.query or parts.fragment:
        raise Forbidden("The address ends with its path: no ? and no #.")
    address = _literal(parts.hostname or "")
    if address is not None:
        check_address(address, networks, is_encrypted=parts.scheme == "https")
    elif parts.scheme != "https" and not networks:
        raise Forbidden("The address must begin with https://.")


def check_addresses(found: Iterable[str], networks: Sequence[Network], *, is_encrypted: bool) -> list[str]:
    """The addresses that a name leads to, as they may be called: all of them, or none. Raises Forbidden."""
    addresses = [ip_address(text.partition("%")[0]) for text in found]
    if not addresses:
        raise Forbidden("The name leads to no address.")
    for address in addresses:
        check_address(address, networks, is_encrypted=is_encrypted)
    return list(dict.fromkeys(str(address) for address in addresses))


def check_address(address: Address, networks: Sequence[Network], *, is_encrypted: bool) -> None:
    """Raises Forbidden for one that is not public and not the operator's, and for a public one without TLS."""
    target = _target(address)
    if any(target in network for network in networks):
        return
    if not _is_public(target):
        raise Forbidden("The address is not a public one.")
    if not is_encrypted:
        raise Forbidden("The address must begin with https://.")


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise Forbidden("The address can't be read.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Forbidden("The address must begin with https:// and name a host.")
    return parts


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None


def _target(address: Address) -> Address:
    """The address that is called in the end: an IPv6 address may be a wrapped IPv4 one."""
    if isinstance(address, IPv4Address):
        return address
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in _NAT64 or (address in _COMPATIBLE and int(address) > 1):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if any(address in network for network in _INNER):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
