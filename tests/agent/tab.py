"""What a page of a chat does at a real server: it listens, and catches up by REST each time that it begins to."""

import asyncio
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.test import Client
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Origin

from tests.sockets import HERE

EVENTS = {
    "agent_message_added": "message",
    "agent_message_updated": "message",
    "agent_turn_changed": "turn",
    "agent_confirmation_changed": "confirmation",
}

threads = ThreadPoolExecutor(8, thread_name_prefix="tabs")


def is_known(frame: dict[str, Any]) -> bool:
    """Known keys and uuids and nothing else."""
    if frame == {"type": "pong"}:
        return True
    name = EVENTS[frame["type"]]
    uuids = [frame["conversation"], frame[name]]
    version = {"version"} if isinstance(frame.get("version"), int) else set()
    return (
        frame.keys() == {"type", "topic", "conversation", name} | version
        and frame["topic"] == f"agent:conv:{frame['conversation']}"
        and all(str(UUID(uuid)) == uuid for uuid in uuids)
    )


@dataclass(kw_only=True)
class Tab:
    """`told` are the messages that frames named, `caught_up` those that REST listed after the last one known, each in its order."""

    socket_url: str
    rest_url: str
    browser: Client
    chat: UUID
    address: str = "192.0.2.1"
    told: list[str] = field(default_factory=list)
    caught_up: list[str] = field(default_factory=list)
    frames: list[dict[str, Any]] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)
    listens: asyncio.Event = field(default_factory=asyncio.Event)
    wire: ClientConnection | None = None

    @property
    def known(self) -> set[str]:
        return {*self.told, *self.caught_up}

    async def live(self) -> None:
        """Listen until cancelled, or until sent away for good."""
        while not {4401, 4403} & set(self.codes):
            with suppress(OSError, TimeoutError):
                await self._listen()
            self.listens.clear()
            await asyncio.sleep(0.2)

    async def leave(self) -> None:
        """As a tab that is closed."""
        if self.wire is not None:
            await self.wire.close()

    async def _listen(self) -> None:
        headers = {"Cookie": self._cookie(), "X-Forwarded-For": self.address}
        url = self.socket_url.replace("http", "ws") + "/ws/agent/"
        # Handshakes take their turn: hundreds of tabs come back at once.
        async with connect(url, origin=Origin(HERE), additional_headers=headers, open_timeout=60) as self.wire:
            await self.wire.send(json.dumps({"type": "subscribe", "conversation": str(self.chat)}))
            await self.wire.send(json.dumps({"type": "ping"}))
            try:
                async for text in self.wire:
                    await self._hear(json.loads(text))
            except ConnectionClosed:
                pass
            self.codes.append(self.wire.close_code or 0)

    async def _hear(self, frame: dict[str, Any]) -> None:
        self.frames.append(frame)
        if frame == {"type": "pong"}:
            await asyncio.get_running_loop().run_in_executor(threads, self._catch_up)
            self.listens.set()
        elif frame["type"] == "agent_message_added":
            self.told.append(frame["message"])

    def _catch_up(self) -> None:
        while True:
            after = f"&after={self.caught_up[-1]}" if self.caught_up else ""
            url = f"{self.rest_url}/api/agent/conversations/{self.chat}/messages?limit=200{after}"
            asked = urllib.request.Request(url, headers={"Cookie": self._cookie(), "X-Forwarded-For": self.address})  # noqa: S310
            with urllib.request.urlopen(asked, timeout=60) as answer:  # noqa: S310
                found = [message["uuid"] for message in json.load(answer)["messages"]]
            self.caught_up += found
            if len(found) < 200:
                return

    def _cookie(self) -> str:
        return f"sessionid={self.browser.cookies['sessionid'].value}"
