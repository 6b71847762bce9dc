"""The caller's address behind proxies (KY-6), and the network that budgets of visitors belong to (RL-2)."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from typing import Any

from django.conf import settings

NETWORK_PREFIX = 64


def caller(meta: Mapping[str, Any]) -> str:
    """REMOTE_ADDR, or with `TRUSTED_PROXY_HOPS=n` the n-th X-Forwarded-For entry from the right.

    A chain shorter than the trusted one, or an entry that is no address, was not written by the trusted proxies: REMOTE_ADDR counts.
    """
    remote = str(meta.get("REMOTE_ADDR", ""))
    hops: int = getattr(settings, "TRUSTED_PROXY_HOPS", 0)
    if hops:
        chain = [part.strip() for part in str(meta.get("HTTP_X_FORWARDED_FOR", "")).split(",")]
        if len(chain) >= hops and (found := _normal(chain[-hops])):
            return found
    return _normal(remote) or ""


def network(ip: str) -> str:
    """The IPv4 address, or the /64 of an IPv6 address; "unknown" for no address, so that those share one budget."""
    if not ip:
        return "unknown"
    address = ip_address(ip)
    if isinstance(address, IPv6Address):
        high = int(address) >> (128 - NETWORK_PREFIX) << (128 - NETWORK_PREFIX)
        return f"{IPv6Address(high)}/{NETWORK_PREFIX}"
    return str(address)


@lru_cache(maxsize=1024)
def _normal(text: str) -> str | None:
    """The address in its usual spelling; an IPv4 one that came mapped into IPv6 is IPv4."""
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(mapped or address)
