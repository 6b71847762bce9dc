"""Changed approvals go to the channel layer's group `approvals`, by their uuid alone, for the sockets of this and other processes.

Whoever changed one only leaves a note: a thread of this process sends it. A layer that is away costs the caller nothing; what could not
be sent is tried again for a while, and the pages look again by themselves anyhow.
"""

import asyncio
import atexit
import os
import threading
import time
from typing import Any
from uuid import UUID

import structlog
from channels.layers import get_channel_layer

from apps.api import approval_events

log = structlog.get_logger(__name__)

GROUP = "approvals"
EVENT = "approval.changed"

SEND_SECONDS = 1.0
AGAIN_SECONDS = 1.0
# What waits longer is given up: nobody who still waits for it could have missed it on their page.
KEPT_SECONDS = 120.0
MOST_KEPT = 10_000
# What is left when the process ends gets this long.
FAREWELL_SECONDS = 1.0


def connect() -> None:
    """Announce from now on."""
    approval_events.approval_changed.connect(_on_changed, dispatch_uid="apps.api.announcing")


def _on_changed(*, approval: UUID, **_: Any) -> None:
    if get_channel_layer() is not None:
        _announcer.note(str(approval))


class _Announcer:
    """One thread a process, with a loop of its own, started by the first event. Of two events of one approval one is sent."""

    _lock: threading.Lock
    _noted: dict[str, float]
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

    def note(self, uuid: str) -> None:
        with self._lock:
            if len(self._noted) >= MOST_KEPT:
                return
            self._noted.setdefault(uuid, time.monotonic())
            self._idle.clear()
            if self._thread is None:
                self._thread = threading.Thread(target=self._send_for_ever, name="announcing", daemon=True)
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
                log.warning("approvals_not_announced", exc_info=error)
                time.sleep(AGAIN_SECONDS)
                self._wake.set()

    async def _send_all(self) -> None:
        while noted := self._take():
            for uuid in noted:
                if not await self._sent(uuid):
                    self._keep(noted)
                    await asyncio.sleep(AGAIN_SECONDS)
                    break

    def _take(self) -> dict[str, float]:
        with self._lock:
            noted, self._noted = self._noted, {}
            if not noted:
                self._idle.set()
        return noted

    async def _sent(self, uuid: str) -> bool:
        try:
            layer = get_channel_layer()
            await asyncio.wait_for(layer.group_send(GROUP, {"type": EVENT, "approval": uuid}), SEND_SECONDS)
        except Exception as error:
            log.warning("approvals_not_announced", error=type(error).__name__)
            return False
        return True

    def _keep(self, noted: dict[str, float]) -> None:
        """Those of them that are not too old, for another try. Sending one twice does no harm."""
        limit = time.monotonic() - KEPT_SECONDS
        with self._lock:
            for uuid, since in noted.items():
                if since > limit:
                    self._noted.setdefault(uuid, since)


_announcer = _Announcer()
os.register_at_fork(after_in_child=_announcer.start_afresh)
atexit.register(_announcer.flush)
