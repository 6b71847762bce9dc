"""Which socket is where, and from which pages one may be opened.

A browser sends its cookies with a handshake from any page: a foreign Origin, and none at all, is refused before it is accepted.
"""

from collections.abc import Iterable
from typing import Any

from django.conf import settings
from django.http.request import validate_host

from apps.agent import consumers as chats
from apps.api import consumers as approvals
from apps.api import standing

_ROUTES: dict[str, Any] = {
    "/ws/agent/": chats.ChatEvents.as_asgi(),
    "/ws/approvals/": approvals.ApprovalEvents.as_asgi(),
}


async def application(scope: Any, receive: Any, send: Any) -> None:
    """One socket, by its path."""
    if not comes_from_here(scope["headers"]):
        await receive()
        # Before it was accepted: the server answers the handshake with 403.
        await send({"type": "websocket.close"})
        return
    await _ROUTES.get(scope["path"], _nowhere)(scope, receive, send)


async def _nowhere(scope: Any, receive: Any, send: Any) -> None:
    """Accepted first, so that the page of ours that asked sees the code."""
    await receive()
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.close", "code": standing.NOT_FOUND})


def comes_from_here(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the one Origin is that of our own pages: the host that was asked, or one that the settings trust."""
    origins = [value.decode("latin-1") for name, value in headers if name == b"origin"]
    hosts = [value.decode("latin-1") for name, value in headers if name == b"host"]
    if len(origins) != 1 or len(hosts) != 1:
        return False
    trusted = {settings.BASE_URL, *getattr(settings, "CSRF_TRUSTED_ORIGINS", ())}
    return origins[0] in trusted or origins[0] in _own(hosts[0])


def _own(host: str) -> set[str]:
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if not validate_host(name.lower(), settings.ALLOWED_HOSTS):
        return set()
    # Behind a proxy the handshake itself may come without TLS: what the page had says only its Origin.
    schemes = ("https",) if settings.SESSION_COOKIE_SECURE else ("https", "http")
    return {f"{scheme}://{host.lower()}" for scheme in schemes}
