"""The official Python client, old (1.x) or new (2.x), against a running server; started with an interpreter that has it, prints JSON.

    python official.py <url> <key> <sku> <what>

`what` is "legacy", "auto", "2026-07-28" or "eliciting" (2.x), or "handshake" (1.x).
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager
from typing import Any

URL, KEY, SKU, WHAT = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {KEY}"}
ASKED: list[str] = []


@asynccontextmanager
async def connected() -> Any:
    """The client, and what it was told when it connected."""
    if WHAT == "handshake":
        import httpx
        from mcp import ClientSession
        from mcp.client.streamable_http import streamable_http_client

        async with (
            httpx.AsyncClient(headers=HEADERS) as http,
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

        more: dict[str, Any] = {"elicitation_callback": asked} if WHAT == "eliciting" else {}
        async with httpx2.AsyncClient(headers=HEADERS) as http:
            mode = "auto" if WHAT == "eliciting" else WHAT
            async with Client(streamable_http_client(URL, http_client=http), mode=mode, **more) as client:
                yield client, client.protocol_version, client.instructions


def shown(result: Any) -> dict[str, Any]:
    """A result under the names of the wire."""
    found: dict[str, Any] = result.model_dump(mode="json", by_alias=True)
    return found


async def main() -> dict[str, Any]:
    """A list, a read, a refusal after which the session goes on, and a dangerous write with its second word."""
    async with connected() as (client, version, instructions):
        tools = [tool.name for tool in (await client.list_tools()).tools]
        read = await client.call_tool("catalogue_list_products", {"limit": 1})
        refused = await client.call_tool("catalogue_list_products", {"nope": 1})
        unknown = await client.call_tool("no_such_tool", {})
        held = shown(await client.call_tool("catalogue_delete_products", {"skus": [SKU]}))
        code = (held.get("structuredContent") or {}).get("confirm_token")
        done = (
            shown(await client.call_tool("catalogue_delete_products", {"skus": [SKU], "confirm_token": code}))
            if code
            else held
        )
        after = await client.call_tool("system_whoami", {})
        return {
            "version": version,
            "instructions": instructions,
            "tools": tools,
            "read": shown(read),
            "refused": shown(refused),
            "unknown": shown(unknown),
            "held": held,
            "done": done,
            "after": shown(after),
            "asked": ASKED,
        }


print(json.dumps(asyncio.run(main())))  # noqa: T201  # the answer to the test
