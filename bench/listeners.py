"""`python -m bench.listeners`: the browsers of SP-4, one loop with a socket each; spoken to by lines of JSON on its standard input."""

import asyncio
import gc
import json
import sys
import time
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin

AT_ONCE = 20

_told: dict[str, list[int]] = {}


async def main() -> None:
    """Open all, say that they are ready, listen until told to end, and say when each event came."""
    loop = asyncio.get_running_loop()
    wanted = json.loads(await loop.run_in_executor(None, sys.stdin.readline))
    turns = asyncio.Semaphore(AT_ONCE)
    wires = await asyncio.gather(*(_open(wanted, client, turns) for client in wanted["clients"]))
    listening = [asyncio.create_task(_listen(wire)) for wire in wires]
    # A pause of ours would be taken for one of the server's.
    gc.collect()
    gc.disable()
    print("ready", flush=True)
    while await loop.run_in_executor(None, sys.stdin.readline) == "count\n":
        print(len(_told), flush=True)
    print(json.dumps(_told), flush=True)
    for task in listening:
        task.cancel()


async def _open(wanted: dict[str, Any], client: dict[str, str], turns: asyncio.Semaphore) -> ClientConnection:
    headers = {"Cookie": client["cookie"], "X-Forwarded-For": client["address"]}
    async with turns:
        wire = await connect(
            wanted["url"],
            origin=Origin(wanted["origin"]),
            additional_headers=headers,
            open_timeout=60,
            ping_interval=None,
            compression=None,
        )
        await wire.send(json.dumps({"type": "subscribe", "conversation": client["chat"]}))
        await wire.send('{"type": "ping"}')
        answer = json.loads(await wire.recv())
        if answer != {"type": "pong"}:
            raise RuntimeError(answer)
        return wire


async def _listen(wire: ClientConnection) -> None:
    async for text in wire:
        frame = json.loads(text)
        _told.setdefault(frame["message"], []).append(time.monotonic_ns())


if __name__ == "__main__":
    asyncio.run(main())
