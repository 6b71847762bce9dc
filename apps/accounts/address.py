"""The caller's address (KY-6): REMOTE_ADDR, or behind n proxies the n-th X-Forwarded-For entry from the right."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

from django.conf import settings
from django.http import HttpRequest


def of(request: HttpRequest) -> str | None:
    """The caller's address in its shortest form, or None when there is none, as over a Unix socket.

    A chain that is too short, or an entry that is no address, was not written by the trusted proxies: REMOTE_ADDR counts.
    """
    hops = settings.TRUSTED_PROXY_HOPS
    forwarded = request.META.get("HTTP_X_FORWARDED_FOR", "").split(",")
    named = _parsed(forwarded[-hops].strip()) if 0 < hops <= len(forwarded) else None
    address = named or _parsed(request.META.get("REMOTE_ADDR", ""))
    return None if address is None else str(address)


def network(request: HttpRequest) -> str:
    """What one host or household shares: the IPv4 address, or the /64 of an IPv6 one."""
    address = of(request)
    if address is None:
        return "unknown"  # they share one
    return str(ip_network(f"{address}/64", strict=False)) if ":" in address else address


def _parsed(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return mapped or address
