"""One decision on a card at a time, in all processes: whoever redeems it writes down what came of it before the next one looks (TU-3).

The gate alone decides whether the write runs. This only keeps the second of two tabs from recording the first one's outcome as its own.
"""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import connection

from apps.api.problems import Problem

WAIT_SECONDS = 5.0
_TRIES_EVERY = 0.05


@contextmanager
def alone(card: UUID, *, wait_seconds: float = WAIT_SECONDS) -> Iterator[None]:
    """Nobody else decides this card meanwhile. Raises Problem `conflict` when somebody still does after so long."""
    take, give = (_take, _give) if connection.vendor == "postgresql" else (_here.take, _here.give)
    until = time.monotonic() + wait_seconds
    while not take(card):
        if time.monotonic() >= until:
            raise Problem("conflict", "This is being decided at this moment, in another tab.", reason="busy")
        time.sleep(_TRIES_EVERY)
    try:
        yield
    finally:
        give(card)


def _take(card: UUID) -> bool:
    """A lock of the connection, not of a transaction: the gate's own come and go. It ends with the process."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [_name(card)])
        row = cursor.fetchone()
    return bool(row and row[0])


def _give(card: UUID) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [_name(card)])


def _name(card: UUID) -> str:
    return f"card {card}"


class _Here:
    """The same in SQLite's one process."""

    def __init__(self) -> None:
        self._lock, self._taken = threading.Lock(), set[UUID]()

    def take(self, card: UUID) -> bool:
        with self._lock:
            is_free = card not in self._taken
            self._taken.add(card)
            return is_free

    def give(self, card: UUID) -> None:
        with self._lock:
            self._taken.discard(card)


_here = _Here()
