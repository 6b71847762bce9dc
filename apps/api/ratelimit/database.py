"""The limiter's store in the database, PostgreSQL or SQLite: the statement that charges decides (RL-4)."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from string import Template
from typing import NamedTuple, TypeVar

from django.db import InterfaceError, InternalError, OperationalError, connection, transaction

from apps.api.ratelimit.bucket import Bucket, Charges, Reading
from apps.api.ratelimit.window import Window

T = TypeVar("T")

PRUNE_SECONDS = 60
PRUNE_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class _Dialect:
    """What the two databases spell differently. `clock` gives whole seconds, anew each time that it is evaluated."""

    clock: str
    each: str
    make_object: str
    group_object: str
    skip_locked: str


_DIALECTS = {
    "postgresql": _Dialect(
        # Not now(): that is the start of the transaction, before the wait for the row.
        clock="CAST(floor(extract(epoch FROM clock_timestamp())) AS bigint)",
        each="jsonb_each_text",
        make_object="jsonb_build_object",
        group_object="jsonb_object_agg",
        skip_locked="FOR UPDATE SKIP LOCKED",
    ),
    "sqlite": _Dialect(
        clock="CAST(strftime('%%s', 'now') AS bigint)",
        each="json_each",
        make_object="json_object",
        group_object="json_group_object",
        skip_locked="",
    ),
}

# The live slots of the row: `window` says why some ahead of the clock are among them.
_LIVE = """
    SELECT CAST(entry.key AS bigint) AS slot, CAST(entry.value AS bigint) AS units
    FROM (SELECT $clock AS now) AS clock, $each(bucket.slots) AS entry
    WHERE CAST(entry.key AS bigint) BETWEEN clock.now - %(seconds)s AND clock.now + %(seconds)s
"""

# SET and WHERE are evaluated with the row locked. The clock may move on between its readings: a later one only finds
# fewer slots alive, so the budget holds. dead_minute changes once a minute, which keeps most updates off its index.
_TAKE = """
    INSERT INTO api_bucket AS bucket (name, slots, dead_minute)
    VALUES (
        %(name)s,
        $make_object(CAST($clock AS text), CAST(%(units)s AS bigint)),
        ($clock + %(seconds)s) / 60 + 1
    )
    ON CONFLICT (name) DO UPDATE SET
        slots = (
            SELECT $group_object(CAST(slot AS text), units) FROM (
                SELECT slot, CAST(SUM(units) AS bigint) AS units
                FROM ($live UNION ALL SELECT $clock, CAST(%(units)s AS bigint)) AS entries
                GROUP BY slot
            ) AS merged
        ),
        dead_minute = ($clock + %(seconds)s) / 60 + 1
    WHERE (SELECT COALESCE(SUM(units), 0) FROM ($live) AS entries) + %(units)s <= %(budget)s
    RETURNING slots, $clock
"""

_LOOK = "SELECT slots, $clock FROM api_bucket WHERE name = %(name)s"

_PRUNE = """
    DELETE FROM api_bucket WHERE name IN (
        SELECT name FROM api_bucket WHERE dead_minute <= (SELECT $clock / 60)
        ORDER BY dead_minute LIMIT %(rows)s $skip_locked
    )
"""


class _Statements(NamedTuple):
    take: str
    look: str
    prune: str


class DatabaseStore:
    """Exact over everything that shares the default database. `clock` is SQL, for whole seconds."""

    # InternalError: a server that turned read-only in a failover.
    errors = (OperationalError, InterfaceError, InternalError)

    def __init__(self, clock: str = "", *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._prune_at = monotonic() + PRUNE_SECONDS

    def take(self, charges: Charges) -> tuple[Reading, ...]:
        readings = self._healed(lambda: self._take(charges))
        self._healed(self._prune)
        return readings

    def look(self, charges: Charges) -> tuple[Reading, ...]:
        return self._healed(lambda: tuple(self._look(bucket, units) for bucket, units in charges))

    def _take(self, charges: Charges) -> tuple[Reading, ...]:
        # By name, so that two steps over the same buckets never wait for each other in a circle.
        ordered = sorted(charges, key=lambda charge: charge[0].name)
        taken: dict[str, Reading] = {}
        with transaction.atomic(durable=True):
            for bucket, units in ordered:
                reading = self._take_one(bucket, units) if units else self._look(bucket, 0)
                if reading is None:
                    transaction.set_rollback(True)
                    break
                taken[bucket.name] = reading
        if len(taken) < len(charges):
            return self._refused(charges, refusing=ordered[len(taken)][0])
        return tuple(taken[bucket.name] for bucket, _ in charges)

    def _take_one(self, bucket: Bucket, units: int) -> Reading | None:
        """None: the statement refused."""
        row = self._fetch(self._statements.take, bucket, units=units)
        return row and self._reading(row, bucket, 0)

    def _refused(self, charges: Charges, *, refusing: Bucket) -> tuple[Reading, ...]:
        """Read after the rollback. Should the slots have left by now, the refusal stands and the wait is a second."""
        readings = [self._look(bucket, units) for bucket, units in charges]
        at = [bucket for bucket, _ in charges].index(refusing)
        readings[at] = replace(readings[at], wait=max(1, readings[at].wait))
        return tuple(readings)

    def _look(self, bucket: Bucket, units: int) -> Reading:
        row = self._fetch(self._statements.look, bucket, units=units)
        return self._reading(row, bucket, units) if row else Reading(0, 0, 0)

    def _fetch(self, statement: str, bucket: Bucket, *, units: int) -> tuple[str, int] | None:
        values: dict[str, str | int] = {
            "name": bucket.name,
            "budget": bucket.budget,
            "seconds": bucket.seconds,
            "units": units,
        }
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            row: tuple[str, int] | None = cursor.fetchone()
        return row

    def _reading(self, row: tuple[str, int], bucket: Bucket, units: int) -> Reading:
        slots, now = row
        window = Window(sorted((int(slot), taken) for slot, taken in json.loads(slots).items()))
        window.advance(bucket, now)
        return window.reading(bucket, units, now)

    def _prune(self) -> None:
        """Delete dead rows: a batch a minute and process, and the next one after a second when there were more."""
        with self._lock:
            now = self._monotonic()
            if now < self._prune_at:
                return
            self._prune_at = now + PRUNE_SECONDS
        with connection.cursor() as cursor:
            cursor.execute(self._statements.prune, {"rows": PRUNE_ROWS})
            if cursor.rowcount == PRUNE_ROWS:
                self._prune_at = now + 1

    def _healed(self, act: Callable[[], T]) -> T:
        """A connection that broke is closed, so that the next try opens one; the error goes on."""
        try:
            return act()
        except self.errors:
            connection.close_if_unusable_or_obsolete()
            raise

    @cached_property
    def _statements(self) -> _Statements:
        dialect = _DIALECTS[connection.vendor]
        words = {**asdict(dialect), "clock": self._clock or dialect.clock}
        words["live"] = Template(_LIVE).substitute(words)
        return _Statements(*(Template(statement).substitute(words) for statement in (_TAKE, _LOOK, _PRUNE)))
