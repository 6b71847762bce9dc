"""The sliding window as arithmetic, without a clock or a store (RL-2).

Time is cut into slots of one second. A unit taken in slot s counts until slot s has left the window whole, which is at
the start of second s + seconds + 1: so no span of `seconds` seconds, wherever it begins, holds more than the budget.
Since slots end on whole seconds, a wait that is rounded up to whole seconds is a difference of slots, and exact.

A clock that is set back leaves slots ahead of it. They count until they have left, so that nothing is given away, but those
more than a window ahead are forgotten: nobody waits for hours until the clock has caught up.
"""

from collections import deque
from collections.abc import Iterable

from apps.api.ratelimit.bucket import Bucket, Reading


class Window:
    """The live slots of one bucket, oldest first, and their sum."""

    __slots__ = ("_slots", "used")

    def __init__(self, slots: Iterable[tuple[int, int]] = ()) -> None:
        """`slots` are pairs of slot and units, oldest first."""
        self._slots = deque(slots)
        self.used = sum(units for _, units in self._slots)

    def advance(self, bucket: Bucket, now: int) -> None:
        """Let go of the slots that have left, and of those too far ahead."""
        while self._slots and self._slots[0][0] < now - bucket.seconds:
            self.used -= self._slots.popleft()[1]
        while self._slots and self._slots[-1][0] > now + bucket.seconds:
            self.used -= self._slots.pop()[1]

    def add(self, units: int, now: int) -> None:
        """Take the units in the present slot."""
        present = self._slots.pop()[1] if self._slots and self._slots[-1][0] == now else 0
        self._slots.append((now, present + units))
        self.used += units

    def reading(self, bucket: Bucket, units: int, now: int) -> Reading:
        """How the bucket stands at `now`, and how long `units` more must wait."""
        reset = self._slots[0][0] + bucket.seconds + 1 - now if self._slots else 0
        return Reading(self.used, reset, self._wait(bucket, units, now))

    def empty(self) -> bool:
        return not self._slots

    def _wait(self, bucket: Bucket, units: int, now: int) -> int:
        over = self.used + units - bucket.budget
        if not units or over <= 0:
            return 0
        for slot, freed in self._slots:
            over -= freed
            if over <= 0:
                return slot + bucket.seconds + 1 - now
        raise ValueError("More units than the budget never fit.")
