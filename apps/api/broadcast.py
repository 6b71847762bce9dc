"""Sends events to groups of the channel layer, for the sockets of this and other processes.

Whoever has something to say only leaves a note: a thread of this process sends it. A layer that is away costs the caller nothing; what
could not be sent is tried again for a while, and whoever listens looks again by itself anyhow.
"""

import asyncio
import atexit
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog
from channels.layers import get_channel_layer

log = structlog.get_logger(__name__)

SEND_SECONDS = 1.0
AGAIN_SECONDS = 1.0
# What waits longer is given up: nobody who still waits for it could have missed it on their page.
KEPT_SECONDS = 120.0
MOST_KEPT = 10_000
# What is left when the process ends gets this long.
FAREWELL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Note:
    """One message to a group."""

    message: Mapping[str, Any]
    since: float = field(default_factory=time.monotonic)


# The group, and what it is about.
Name = tuple[str, str]


def post(group: str, message: Mapping[str, Any], *, about: str) -> None:
    """Send it soon, from any thread. Of two that wait and are about the same, the newer one is sent."""
    if get_channel_layer() is not None:
        _sender.note((group, about), Note(message=message))


class _Sender:
    """One thread a process, with a loop of its own, started by the first note."""

    _lock: threading.Lock
    _noted: dict[Name, Note]
    _thread: threading.Thread | None
    _wake: threading.Event
    _idle: threading.Event

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """A forked worker has the parent's variables and none of its threads, one of which may have held the lock."""
        self._lock, self._noted = threading.Lock(), {}
        self._thread, self._wake, self._idle = None, threading.Event(), threading.Event()
        self._idle.set()

    def note(self, name: Name, note: Note) -> None:
        with self._lock:
            if len(self._noted) >= MOST_KEPT and name not in self._noted:
                return
            self._noted[name] = note
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_for_ever, name="broadcast", daemon=True)
                self._thread.start()
        self._wake.set()

    def flush(self, seconds: float = FAREWELL_SECONDS) -> None:
        """Wait until everything is sent, or for so long."""
        if self._thread is not None:
            self._idle.wait(seconds)

    def _send_for_ever(self) -> None:
        loop = asyncio.new_event_loop()
        while True:
            self._wake.wait()
            self._wake.clear()
            # Whatever it is, the thread must live.
            try:
                loop.run_until_complete(self._send_all())
            except Exception as error:
                log.warning("events_not_sent", exc_info=error)
                time.sleep(AGAIN_SECONDS)
                self._wake.set()

    async def _send_all(self) -> None:
        while noted := self._take():
            for name in list(noted):
                if not await self._sent(name, noted[name]):
                    self._keep(noted)
                    await asyncio.sleep(AGAIN_SECONDS)
                    break
                del noted[name]

    def _take(self) -> dict[Name, Note]:
        with self._lock:
            noted, self._noted = self._noted, {}
            if not noted:
                self._idle.set()
        return noted

    async def _sent(self, name: Name, note: Note) -> bool:
        try:
            layer = get_channel_layer()
            await asyncio.wait_for(layer.group_send(name[0], dict(note.message)), SEND_SECONDS)
        except Exception as error:
            log.warning("events_not_sent", error=type(error).__name__)
            return False
        return True

    def _keep(self, noted: dict[Name, Note]) -> None:
        """Those that are not too old, for another try before what came meanwhile. Sending one twice does no harm."""
        limit = time.monotonic() - KEPT_SECONDS
        young = {name: note for name, note in noted.items() if note.since > limit}
        with self._lock:
            self._noted = {**young, **self._noted}


_sender = _Sender()
os.register_at_fork(after_in_child=_sender.start_afresh)
atexit.register(_sender.flush)
