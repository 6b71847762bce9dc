"""The limiter's store in this process: the one-process default, and the fallback of the shared stores (RL-4)."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

from apps.api.ratelimit.bucket import Bucket, Charges, Reading
from apps.api.ratelimit.window import Window


class MemoryStore:
    """Exact over the threads of one process. `clock` gives seconds and never goes back."""

    errors: tuple[type[Exception], ...] = ()

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        # The bucket charged longest ago first, so that pruning looks at one end only.
        self._windows: OrderedDict[str, tuple[Bucket, Window]] = OrderedDict()

    def take(self, charges: Charges) -> tuple[Reading, ...]:
        with self._lock:
            now = int(self._clock())
            self._prune(now)
            readings = self._readings(charges, now)
            if any(reading.wait for reading in readings):
                return readings
            for bucket, units in charges:
                if units:
                    self._add(bucket, units, now)
            return self._readings([(bucket, 0) for bucket, _ in charges], now)

    def look(self, charges: Charges) -> tuple[Reading, ...]:
        with self._lock:
            return self._readings(charges, int(self._clock()))

    def __len__(self) -> int:
        """How many buckets are kept."""
        return len(self._windows)

    def _readings(self, charges: Charges, now: int) -> tuple[Reading, ...]:
        return tuple(self._window(bucket, now).reading(bucket, units, now) for bucket, units in charges)

    def _window(self, bucket: Bucket, now: int) -> Window:
        kept = self._windows.get(bucket.name)
        if kept is None:
            return Window()
        kept[1].advance(bucket, now)
        return kept[1]

    def _add(self, bucket: Bucket, units: int, now: int) -> None:
        window = self._window(bucket, now)
        window.add(units, now)
        self._windows[bucket.name] = (bucket, window)
        self._windows.move_to_end(bucket.name)

    def _prune(self, now: int) -> None:
        """Drop empty buckets from the old end; each was put there by one charge, so a charge pays for one."""
        while self._windows:
            name, (bucket, window) = next(iter(self._windows.items()))
            window.advance(bucket, now)
            if not window.empty():
                return
            del self._windows[name]
