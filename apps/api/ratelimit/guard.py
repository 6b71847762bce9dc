"""What stands between a shared store that may go down and the local one that answers meanwhile (RL-4)."""

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from apps.api.ratelimit.bucket import Charges, Reading, Store
from apps.api.ratelimit.memory import MemoryStore

T = TypeVar("T")

RETRY_SECONDS = 5

logger = logging.getLogger(__name__)


class Guard:
    """Asks the shared side while it is up. After an error the local side answers, and every 5 seconds one caller tries.

    One log line says that the shared side is down, one that it is back.
    """

    def __init__(
        self, name: str, errors: tuple[type[Exception], ...], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name = name
        self._errors = errors
        self._clock = clock
        self._lock = threading.Lock()
        self._retry_at: float | None = None

    def ask(self, shared: Callable[[], T], local: Callable[[], T]) -> T:
        was_down = self._retry_at is not None
        if was_down and not self._takes_turn():
            return local()
        try:
            answer = shared()
        except self._errors as error:
            self._went_down(error)
            return local()
        # Only a try ends the outage: an answer that was under way when it began says nothing.
        if was_down:
            self._came_back()
        return answer

    def _takes_turn(self) -> bool:
        with self._lock:
            now = self._clock()
            if self._retry_at is not None and now < self._retry_at:
                return False
            self._retry_at = now + RETRY_SECONDS
            return True

    def _went_down(self, error: Exception) -> None:
        with self._lock:
            first = self._retry_at is None
            self._retry_at = self._clock() + RETRY_SECONDS
        if first:
            logger.warning("%s is down, each process limits on its own: %s", self._name, type(error).__name__)

    def _came_back(self) -> None:
        with self._lock:
            first = self._retry_at is not None
            self._retry_at = None
        if first:
            logger.warning("%s is back", self._name)


class GuardedStore:
    """A shared store, and the same budgets in this process while it is down: never an error, never no limit (G14)."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, name: str, shared: Store, clock: Callable[[], float] = time.monotonic) -> None:
        self._guard = Guard(name, shared.errors, clock)
        self._shared = shared
        self._local = MemoryStore(clock)

    def take(self, charges: Charges) -> tuple[Reading, ...]:
        return self._guard.ask(lambda: self._shared.take(charges), lambda: self._local.take(charges))

    def look(self, charges: Charges) -> tuple[Reading, ...]:
        return self._guard.ask(lambda: self._shared.look(charges), lambda: self._local.look(charges))
