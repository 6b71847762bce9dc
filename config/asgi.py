"""The ASGI side: the sockets, and embedded all of HTTP by Django's WSGI handler in a pool of threads; else health alone.

Under ASGI itself Django gives each request a thread and a database connection of its own, which costs more than half of
the calls a second and runs out of connections: so HTTP is WSGI in both kinds of process (RE-3).
"""

import asyncio
from typing import Any

from a2wsgi import WSGIMiddleware
from django.conf import settings

from config import handler, startup

startup.prepare()

from config import sockets  # noqa: E402 - models are there from here on

startup.settle()

_HEALTH = frozenset({"/healthz", "/readyz", "/metrics"})
_BODIES = frozenset({b"content-length", b"transfer-encoding"})
# What is still read of a body that was refused, so that the client gets to read why.
DRAINED_BYTES = 16 * 1024 * 1024
DRAINED_SECONDS = 2.0

_handler: Any = handler.Handler()  # the library's types ask for more than PEP 3333 does
_http = WSGIMiddleware(_handler, workers=32 if settings.EMBEDDED else 2)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """One connection, by its scope."""
    if scope["type"] == "websocket":
        await sockets.application(scope, receive, send)
    elif scope["type"] != "http" or settings.EMBEDDED or scope["path"] in _HEALTH:
        body = _Body(scope, receive, send)
        plain: Any = {**scope, "headers": _plain(scope["headers"])}
        await _http(plain, body.receive, body.send)
    else:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"Not found: HTTP is served by the WSGI workers.\n"})


def _plain(headers: Any) -> list[Any]:
    """Without the names that WSGI could not tell from another: `X_Forwarded_For` would be what the proxy wrote (KY-6)."""
    return [(name, value) for name, value in headers if b"_" not in name]


class _Body:
    """Reads the rest of a refused body before the answer ends: uvicorn closes on it, and the client would see a reset.

    It costs no thread: the handler has returned. Who waits for `100 Continue` has sent nothing and is sent away.
    """

    def __init__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = scope.get("headers", ())
        self.unread = any(name in _BODIES for name, _ in headers) and (b"expect", b"100-continue") not in headers
        self._receive, self._send = receive, send

    async def receive(self) -> Any:
        """The next piece of the body. Raises ConnectionResetError when the client went away: what came is not the body."""
        message = await self._receive()
        self.unread = message.get("more_body", False)
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("The client went away.")
        return message

    async def send(self, message: Any) -> None:
        """A piece of the answer; before the last one the body is read to its end."""
        if self.unread and message["type"] == "http.response.body" and not message.get("more_body", False):
            try:
                await asyncio.wait_for(self._drain(), DRAINED_SECONDS)
            except (TimeoutError, ConnectionResetError):
                self.unread = False
        await self._send(message)

    async def _drain(self) -> None:
        left = DRAINED_BYTES
        while self.unread and left > 0:
            left -= len((await self.receive()).get("body", b""))
