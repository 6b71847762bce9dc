"""The leases of the turns that run in this process, renewed by one thread (TU-5).

A turn that passes its time by far, because a tool of it hangs, is renewed no more: the sweep ends it, and the chat is free.
"""

import atexit
import os
import threading
import time
from contextlib import suppress

import structlog
from django.db import DatabaseError, InterfaceError, connection

from apps.agent import turn_state
from apps.agent.turn_state import Attempt

log = structlog.get_logger(__name__)

RENEWALS_A_LEASE = 4


def keep(attempt: Attempt, *, seconds: float) -> None:
    """Renew the lease from now on, until `let_go`, or for so long."""
    _renewer.add(attempt, time.monotonic() + seconds)


def let_go(attempt: Attempt) -> None:
    """The attempt ended in this process."""
    _renewer.drop(attempt)


class _Renewer:
    """One thread a process, started with the first lease, and without one idle and without a connection."""

    _lock: threading.Lock
    _until: dict[Attempt, float]
    _thread: threading.Thread | None
    _wake: threading.Event

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """A forked worker has the parent's variables and none of its threads, one of which may have held the lock."""
        self._lock, self._until = threading.Lock(), {}
        self._thread, self._wake = None, threading.Event()

    def add(self, attempt: Attempt, until: float) -> None:
        with self._lock:
            self._until[attempt] = until
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew_for_ever, name="leases", daemon=True)
                self._thread.start()
        self._wake.set()

    def drop(self, attempt: Attempt) -> None:
        with self._lock:
            self._until.pop(attempt, None)

    def running(self) -> list[Attempt]:
        now = time.monotonic()
        with self._lock:
            return [attempt for attempt, until in self._until.items() if now < until]

    def _renew_for_ever(self) -> None:
        while True:
            if not self.running():
                connection.close()
                self._wake.wait()
            self._wake.clear()
            time.sleep(turn_state.lease().total_seconds() / RENEWALS_A_LEASE)
            # Whatever it is, the thread must live: the next round tries again, or the lease runs out and the turn is interrupted.
            try:
                turn_state.renew(self.running())
            except Exception as error:
                log.warning("leases_not_renewed", exc_info=error)
                with suppress(DatabaseError, InterfaceError):
                    connection.close()

    def farewell(self) -> None:
        """The process ends in order: its turns say so at once."""
        for attempt in self.running():
            try:
                turn_state.end_here(attempt)
            except Exception as error:
                log.warning("turn_not_ended", exc_info=error)


_renewer = _Renewer()
os.register_at_fork(after_in_child=_renewer.start_afresh)
atexit.register(_renewer.farewell)
