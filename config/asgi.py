"""The ASGI side. Embedded, it serves all of HTTP by Django's WSGI handler in a pool of threads; else health alone.

Under ASGI itself Django gives each request a thread and a database connection of its own, which costs more than half of
the calls a second and runs out of connections: so HTTP is WSGI in both kinds of process (RE-3).
"""

from typing import Any

from a2wsgi import WSGIMiddleware
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler

from config import startup

startup.prepare()

_HEALTH = frozenset({"/healthz", "/readyz"})
_http = WSGIMiddleware(WSGIHandler(), workers=32 if settings.EMBEDDED else 2)


async def application(scope: Any, receive: Any, send: Any) -> None:
    """One connection, by its scope."""
    if scope["type"] != "http" or settings.EMBEDDED or scope["path"] in _HEALTH:
        await _http(scope, receive, send)
    else:
        await send({"type": "http.response.start", "status": 404, "headers": [(b"content-type", b"text/plain")]})
        await send({"type": "http.response.body", "body": b"Not found: HTTP is served by the WSGI workers.\n"})
