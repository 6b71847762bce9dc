"""Reading the environment: every value is typed, and a missing or malformed one stops the start with its name."""

import os
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")
Network = IPv4Network | IPv6Network


def text(name: str, default: str | None = None) -> str:
    """The variable's text; ImproperlyConfigured when it is missing and has no default."""
    value = os.environ.get(name, default)
    if value is None:
        raise ImproperlyConfigured(f"The environment variable {name} is missing.")
    return value


def flag(name: str, *, default: bool) -> bool:
    """1, true, yes, on or 0, false, no, off in any case; anything else is refused."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in {"1", "true", "yes", "on"}:
        return True
    if value in {"0", "false", "no", "off"}:
        return False
    raise ImproperlyConfigured(f"{name} must be true or false.")


def number(name: str, *, default: int, minimum: int = 0) -> int:
    """A whole number, at least `minimum`."""
    return _parsed(
        name, str(default), lambda value: _at_least(int(value), minimum), f"a whole number, {minimum} or more"
    )


def names(name: str, default: str | None = "") -> list[str]:
    """Texts separated by commas; blanks are dropped. Without a default there must be one."""
    found = _parts(text(name, default))
    if not found and default is None:
        raise ImproperlyConfigured(f"{name} must name at least one.")
    return found


def networks(name: str) -> list[Network]:
    """Networks like 10.0.0.0/8 or fd00::/8, separated by commas; a single address is one. None by default."""
    return _parsed(
        name, "", lambda value: [ip_network(part) for part in _parts(value)], "networks like 10.0.0.0/8, fd00::/8"
    )


def url(name: str, default: str | None = None) -> str:
    """An http or https address of a host, without the last slash."""
    value = text(name, default).rstrip("/")
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.netloc or parts.path or parts.query or parts.fragment:
        raise ImproperlyConfigured(f"{name} must read https://host or https://host:port.")
    return value


def mail_server(name: str, default: str) -> dict[str, str | int | bool]:
    """Django's e-mail settings from `smtp://user:password@host:port`; `smtps://` is TLS from the first byte, `smtp+tls://` STARTTLS.

    `console://` prints mails. Neither user nor password is part of an error message.
    """
    parts = urlsplit(text(name, default))
    if parts.scheme == "console":
        return {"EMAIL_BACKEND": "django.core.mail.backends.console.EmailBackend"}
    try:
        port = parts.port or (465 if parts.scheme == "smtps" else 25)
    except ValueError:
        port = 0
    if parts.scheme not in ("smtp", "smtps", "smtp+tls") or not parts.hostname or not port:
        raise ImproperlyConfigured(f"{name} must read smtp://user:password@host:port, smtps:// or smtp+tls://.")
    return {
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": parts.hostname,
        "EMAIL_PORT": port,
        "EMAIL_HOST_USER": unquote(parts.username or ""),
        "EMAIL_HOST_PASSWORD": unquote(parts.password or ""),
        "EMAIL_USE_SSL": parts.scheme == "smtps",
        "EMAIL_USE_TLS": parts.scheme == "smtp+tls",
    }


def secrets(name: str, default: str | None = None) -> dict[str, str]:
    """Named secrets, `id:secret,id:secret`: the first one is current, the others still verify.

    The secret is never part of an error message.
    """
    found: dict[str, str] = {}
    for pair in text(name, default).split(","):
        key, separator, secret = pair.strip().partition(":")
        if not separator or not key or len(secret) < 16 or key in found:
            raise ImproperlyConfigured(f"{name} must read id:secret,id:secret with secrets of 16 characters or more.")
        found[key] = secret
    return found


def _parts(value: str) -> list[str]:
    return [part.strip() for part in value.split(",") if part.strip()]


def _parsed(name: str, default: str, parse: Callable[[str], T], wanted: str) -> T:
    try:
        return parse(os.environ.get(name, "").strip() or default)
    except ValueError:
        raise ImproperlyConfigured(f"{name} must be {wanted}.") from None


def _at_least(value: int, minimum: int) -> int:
    if value < minimum:
        raise ValueError
    return value
