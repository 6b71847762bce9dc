"""The way out to a provider: a name is resolved once, checked, and called by the very address that was checked.

Nothing of the environment leaves with a request: no proxy, no netrc, and only the headers that are named here. The key is added here and
nowhere else, so no library ever holds it.
"""

import asyncio
import socket
from typing import Any

import httpx2

from apps.agent.providers import outgoing
from apps.agent.providers.connection import Connection
from apps.agent.providers.outgoing import Forbidden

_HEADERS = {
    "host", "accept", "accept-encoding", "connection", "content-type", "content-length", "anthropic-version", "anthropic-beta",
}  # fmt: skip
_AGENT = "tollhouse"


def client(connection: Connection) -> httpx2.AsyncClient:
    """A client of one turn. It follows no redirect."""
    timeout = httpx2.Timeout(connection.silence_seconds, connect=connection.connect_seconds)
    transport = Guarded(connection)
    return httpx2.AsyncClient(transport=transport, timeout=timeout, trust_env=False, follow_redirects=False)


class Guarded(httpx2.AsyncBaseTransport):
    """Raises Forbidden for a request that may not leave."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inner = httpx2.AsyncHTTPTransport(retries=0)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        outgoing.check_url(_bare(request.url), self._connection.networks)
        host, addresses = request.url.host, await self._addresses(request.url)
        headers = self._headers(request)
        for number, address in enumerate(addresses, start=1):
            pinned = httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except httpx2.ConnectError:
                if number == len(addresses):
                    raise
        raise Forbidden("The name leads to no address.")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _addresses(self, url: httpx2.URL) -> list[str]:
        port = url.port or (443 if url.scheme == "https" else 80)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._connection.connect_seconds):
                found = await loop.getaddrinfo(url.host, port, type=socket.SOCK_STREAM)
        except TimeoutError:
            raise httpx2.ConnectTimeout("The name could not be looked up in time.") from None
        except (OSError, UnicodeError):
            raise httpx2.ConnectError("The name could not be looked up.") from None
        texts = [str(address[4][0]) for address in found]
        return outgoing.check_addresses(texts, self._connection.networks, is_encrypted=url.scheme == "https")

    def _headers(self, request: httpx2.Request) -> list[tuple[str, str]]:
        kept = [(name, value) for name, value in request.headers.multi_items() if name.lower() in _HEADERS]
        return [*kept, ("user-agent", _AGENT), *self._key()]

    def _key(self) -> list[tuple[str, str]]:
        key = self._connection.key
        if not key:
            return []
        if self._connection.provider == "anthropic":
            return [("x-api-key", key)]
        return [("authorization", f"Bearer {key}")]


def _bare(url: Any) -> str:
    """Without the query that a library may add."""
    return str(url.copy_with(query=None, fragment=None))
