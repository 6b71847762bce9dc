"""The official Python client, 1.x or 2.x, that watches a call: how far it is, and what becomes of it where it waits for an approver.

    python official_watching.py <url> <key> <how> <arguments of walk_go>

`how` is "handshake" (1.x), or "2026-07-28" (2.x), which also knows tasks. Each task and at last the result is one line of JSON.
"""

import asyncio
import json
import sys
from typing import Any

URL, KEY, HOW, GIVEN = sys.argv[1:]
HEADERS = {"Authorization": f"Bearer {KEY}"}
STEPS: list[Any] = []


def say(value: dict[str, Any]) -> None:
    """One line to the test."""
    print(json.dumps(value), flush=True)  # noqa: T201


async def heard(progress: float, total: float | None, message: str | None) -> None:
    """A step of the call."""
    STEPS.append([progress, total, message])


async def watched(client: Any) -> Any:
    """The call's result, whatever it went through."""
    return await client.call_tool("walk_go", json.loads(GIVEN), progress_callback=heard)


async def handshake() -> Any:
    """The client 1.x."""
    import httpx
    from mcp import ClientSession
    from mcp.client.streamable_http import streamable_http_client

    async with (
        httpx.AsyncClient(headers=HEADERS) as http,
        streamable_http_client(URL, http_client=http) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        return await watched(session)


async def modern() -> Any:
    """The client 2.x with the extension of tasks, which it leaves to its users."""
    from typing import Literal

    import httpx2
    from mcp import Client, types
    from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
    from mcp.client.streamable_http import streamable_http_client
    from pydantic import Field, TypeAdapter

    class Created(types.Result):  # type: ignore[misc]  # of a library that only the client's interpreter has
        result_type: Literal["task"] = Field(alias="resultType")
        task_id: str = Field(alias="taskId")

    class Asked(types.RequestParams):  # type: ignore[misc]  # of a library that only the client's interpreter has
        task_id: str = Field(alias="taskId")

    class Get(types.Request[Asked, Literal["tasks/get"]]):  # type: ignore[misc]  # of a library that only the client's interpreter has
        method: Literal["tasks/get"] = "tasks/get"
        name_param = "taskId"

    async def followed(created: Created, context: ClaimContext) -> Any:
        say({"task": created.model_dump(mode="json", by_alias=True)})
        while True:
            request = Get(params=Asked(taskId=created.task_id))
            task = await context.session.send_request(request, TypeAdapter(dict[str, Any]))
            if task["status"] != "working":
                return types.CallToolResult.model_validate(task["result"])
            await asyncio.sleep(0.2)

    class Tasks(ClientExtension):  # type: ignore[misc]  # of a library that only the client's interpreter has
        identifier = "io.modelcontextprotocol/tasks"

        def claims(self) -> Any:
            return (ResultClaim(result_type="task", model=Created, resolve=followed),)

    async with (
        httpx2.AsyncClient(headers=HEADERS) as http,
        Client(streamable_http_client(URL, http_client=http), mode=HOW, extensions=[Tasks()]) as client,
    ):
        return await watched(client)


found = asyncio.run(handshake() if HOW == "handshake" else modern())
say({"steps": STEPS, "result": found.model_dump(mode="json", by_alias=True)})
