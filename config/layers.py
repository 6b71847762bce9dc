"""The channel layer of one process. Unlike Channels' own one in memory it wakes a server's loop from any thread, and drops nothing.

Messages that are equal and wait for the same receiver are one: an event says that something changed, not how often.
"""

import asyncio
import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

Message = Mapping[str, Any]


class Mailbox:
    """What waits for one channel. It belongs to the loop that receives from it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._lock = loop, threading.Lock()
        self._waiting: dict[str, Message] = {}
        self._arrived = asyncio.Event()

    def put(self, message: Message) -> None:
        """From any thread."""
        with self._lock:
            was_empty = not self._waiting
            self._waiting.setdefault(json.dumps(message, sort_keys=True), message)
        if was_empty:
            # Its server may have stopped meanwhile: then nobody waits any more.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._arrived.set)

    async def get(self) -> Message:
        """The one that waits longest."""
        while True:
            with self._lock:
                if self._waiting:
                    return self._waiting.pop(next(iter(self._waiting)))
                self._arrived.clear()
            await self._arrived.wait()


class OneProcessLayer:
    """What consumers use of Channels' layer protocol: groups. Messages are JSON values."""

    extensions = ("groups",)

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._boxes: dict[str, Mailbox] = {}
        self._groups: dict[str, set[str]] = {}

    async def new_channel(self, prefix: str = "specific.") -> str:
        """A name that only this consumer receives by."""
        name = f"{prefix}{uuid4().hex}"
        with self._lock:
            self._boxes[name] = Mailbox(asyncio.get_running_loop())
        return name

    async def receive(self, channel: str) -> Message:
        """The next message. Cancelled, it closes the channel: Channels does that at the consumer's end and at no other time."""
        with self._lock:
            box = self._boxes[channel]
        try:
            return await box.get()
        except asyncio.CancelledError:
            self._close(channel)
            raise

    async def group_add(self, group: str, channel: str) -> None:
        """The channel gets what is sent to the group from now on."""
        with self._lock:
            self._groups.setdefault(group, set()).add(channel)

    async def group_discard(self, group: str, channel: str) -> None:
        """And no more."""
        with self._lock:
            self._leave(group, channel)

    async def group_send(self, group: str, message: Message) -> None:
        """To every channel of the group, on whichever loop it waits."""
        with self._lock:
            boxes = [self._boxes[name] for name in self._groups.get(group, ()) if name in self._boxes]
        for box in boxes:
            box.put(message)

    def _close(self, channel: str) -> None:
        with self._lock:
            self._boxes.pop(channel, None)
            for group in [name for name, channels in self._groups.items() if channel in channels]:
                self._leave(group, channel)

    def _leave(self, group: str, channel: str) -> None:
        channels = self._groups.get(group, set())
        channels.discard(channel)
        if not channels:
            self._groups.pop(group, None)
