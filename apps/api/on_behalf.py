"""What asks on behalf of a live session may say of itself (LS-7). Everything odd raises ValueError, before anything is read or charged."""

import re
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from typing import Any, get_args

from apps.api.call import Allow, Entrance, OnBehalf

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
MAX_VIA = 64


def entrance(given: Mapping[str, Any] | None) -> Entrance:
    """The facts of `request_context`: language, base_url, hosts, currency, request_id and ip; what is not given is None to a handler."""
    if given is not None and not isinstance(given, Mapping):
        raise ValueError("request_context is a mapping.")
    context = {name: value for name, value in (given or {}).items() if value is not None}
    if unknown := set(context) - set(_READ):
        raise ValueError(f"request_context does not know {', '.join(sorted(map(str, unknown)))}.")
    found = {name: _READ[name](value) for name, value in context.items()}
    return Entrance(
        request_id=found.get("request_id", ""),
        ip=found.get("ip", ""),
        accept_language=found.get("language"),
        base_url=found.get("base_url"),
        hosts=found.get("hosts", ()),
        currency=found.get("currency"),
    )


def options(ref: object, *, audience: str, impersonated: bool, allow: str, via: str) -> OnBehalf:
    """Who asks, and how much they may."""
    if audience != "admin":
        raise ValueError("A live session calls the tools of the audience admin.")
    if not isinstance(impersonated, bool):
        raise ValueError("impersonated is True or False.")
    if allow not in get_args(Allow):
        raise ValueError("allow is read or all.")
    if not isinstance(via, str) or not via.isprintable() or not 1 <= len(via.encode()) <= MAX_VIA:
        raise ValueError(f"via is a text of 1 to {MAX_VIA} bytes.")
    return OnBehalf(ref=ref, impersonated=impersonated, allow="all" if allow == "all" else "read", via=via)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise ValueError("request_context takes texts that are not empty.")
    return value


def _url(value: Any) -> str:
    return _text(value).rstrip("/")


def _hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError("hosts is a list, the canonical one first.")
    return tuple(map(_text, value))


def _request_id(value: Any) -> str:
    if not _REQUEST_ID.fullmatch(_text(value)):
        raise ValueError("request_id is 1 to 64 letters, digits, dots, dashes and underscores.")
    return str(value)


def _ip(value: Any) -> str:
    return str(ip_address(_text(value).partition("%")[0]))


_READ: Mapping[str, Callable[[Any], Any]] = {
    "language": _text,
    "base_url": _url,
    "hosts": _hosts,
    "currency": _text,
    "request_id": _request_id,
    "ip": _ip,
}
