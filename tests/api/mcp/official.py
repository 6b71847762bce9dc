"""A session of the official Python client, 1.x or 2.x, that does what it is told; started with an interpreter that has one of them.

    python official.py <url> <key> <how>

`how` is "handshake" (1.x), or "legacy", "auto", "2026-07-28" or "eliciting" (2.x). The first line of its output says how it is connected;
then each line of its input, `{"list": true}` or `{"call": name, "arguments": {…}}`, is answered by one. What the client raises is
`{"raised": …}`.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import Any

URL, KEY, HOW = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {KEY}"}
ASKED: list[str] = []
STATUSES: list[int] = []


async def seen(response: Any) -> None:
    """Of HTTP's status the client 2.x says nothing."""
    STATUSES.append(response.status_code)


HTTP: dict[str, Any] = {"headers": HEADERS, "event_hooks": {"response": [seen]}}


@asynccontextmanager
async def connected() -> Any:
    """The client, and what it was told when it connected."""
    if HOW == "handshake":
        import httpx
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx.AsyncClient(**HTTP) as http,
            streamable_http_client(URL, http_client=http) as (read, write, _),
            ClientSession(read, write) as session,
        ):
            told = await session.initialize()
            yield session, told.protocolVersion, told.instructions
    else:
        import httpx2
        from mcp import Client, types
        from mcp.client.streamable_http import streamable_http_client

        async def asked(context: Any, params: Any) -> Any:
            ASKED.append(params.message)
            return types.ElicitResult(action="accept", content={"ok": True})

        more: dict[str, Any] = {"elicitation_callback": asked} if HOW == "eliciting" else {}
        async with httpx2.AsyncClient(**HTTP) as http:
            mode = "auto" if HOW == "eliciting" else HOW
            async with Client(streamable_http_client(URL, http_client=http), mode=mode, **more) as client:
                yield client, client.protocol_version, client.instructions


async def done(client: Any, wish: dict[str, Any]) -> dict[str, Any]:
    """What the client makes of it, under the names of the wire, with what it asked its person meanwhile."""
    ASKED.clear()
    try:
        found = await client.list_tools() if "list" in wish else await client.call_tool(wish["call"], wish["arguments"])
    except Exception as error:
        return raised(error)
    return {"result": found.model_dump(mode="json", by_alias=True), "asked": list(ASKED)}


def raised(error: BaseException) -> dict[str, Any]:
    """An error of the client's, the innermost one of a group."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return {"raised": f"{type(error).__name__}: {error} (HTTP {STATUSES[-1:]})"}


def say(value: dict[str, Any]) -> None:
    """One line to the test."""
    print(json.dumps(value), flush=True)  # noqa: T201


async def main() -> None:
    """Until the input ends."""
    async with connected() as (client, version, instructions):
        say({"version": version, "instructions": instructions})
        while line := await asyncio.to_thread(sys.stdin.readline):
            say(await done(client, json.loads(line)))


try:
    asyncio.run(main())
except Exception as error:
    say(raised(error))
