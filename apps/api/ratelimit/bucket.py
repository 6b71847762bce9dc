"""The values of the limiter: what is charged, what a store answers, what the caller gets."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """In any `seconds` seconds at most `budget` units are admitted (RL-2).

    `name` tells the bucket from every other, has at most 200 characters and holds no secret: it becomes a Redis key.
    """

    policy: str
    name: str
    budget: int
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class Reading:
    """One bucket as a store sees it: units in use, seconds until the next one comes back (0: none is in use),
    and seconds until the units asked for fit (0: they do)."""

    used: int
    reset: int
    wait: int


Charges = Sequence[tuple[Bucket, int]]


class Store(Protocol):
    """Where buckets live. Charges name each bucket once, with units from 0 to its budget; 0 units always fit.

    Readings come in the order of the charges. The units were taken exactly when no reading waits.
    """

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        """What is raised when the store is down."""

    def take(self, charges: Charges) -> tuple[Reading, ...]:
        """Check and charge all buckets in one atomic step; nothing is taken when one of them refuses."""

    def look(self, charges: Charges) -> tuple[Reading, ...]:
        """What `take` would find now; takes nothing."""


@dataclass(frozen=True, kw_only=True)
class Level:
    """How a bucket stands; `reset_seconds` until the next unit comes back, 0 when none is in use."""

    bucket: Bucket
    remaining: int
    reset_seconds: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`retry_after` is None when the charge was admitted, and when it is above a budget: it would never be."""

    admitted: bool
    levels: tuple[Level, ...]
    retry_after: int | None
