"""Who is still at work (ID-3): a lease that a thread of the worker's process renews, and that runs out when the process dies or stops.

On PostgreSQL the signs are rows, written through a connection of the renewer's own; in SQLite's one process they are in memory.
"""

import os
import threading
import time
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError, connection
from django.db.models import DurationField, ExpressionWrapper, F, Q
from django.db.models.functions import Now

from apps.api.models import Lifesign

log = structlog.get_logger(__name__)

RENEWALS_A_LEASE = 4

# However often a handler reports, so often at most it is written.
REPORTS_EVERY = 0.25


@dataclass(frozen=True, kw_only=True)
class Work:
    """One attempt of one piece of work."""

    kind: str
    uuid: UUID
    attempt: int


@dataclass(frozen=True, kw_only=True)
class Sign:
    """What is known of an attempt: the seconds since its last heartbeat and since its last progress, and what that reported."""

    silent_seconds: float
    idle_seconds: float
    partial: Any = None


def lease_seconds() -> int:
    return int(getattr(settings, "API_LEASE_SECONDS", 60))


def begin(work: Work) -> None:
    """The first sign of an attempt, in the transaction that claims it."""
    if _in_memory():
        _renewer.remember(work)
        return
    Lifesign.objects.bulk_create(
        [Lifesign(kind=work.kind, uuid=work.uuid, attempt=work.attempt, seen_at=Now(), progress_at=Now())],
        update_conflicts=True,
        unique_fields=["kind", "uuid"],
        update_fields=["attempt", "seen_at", "progress_at", "partial"],
    )


def is_alive(work: Work) -> bool:
    """Whether the attempt gave a sign within the lease's time."""
    if _in_memory():
        return _renewer.remembers(work)
    lease = timedelta(seconds=lease_seconds())
    return Lifesign.objects.filter(
        kind=work.kind, uuid=work.uuid, attempt=work.attempt, seen_at__gt=Now() - lease
    ).exists()


def of(work: Work) -> Sign | None:
    """The attempt's last signs; None when it never gave one, or none is left."""
    return of_all([work]).get(work)


def of_all(works: Collection[Work]) -> dict[Work, Sign]:
    """The last signs of many attempts, with one query at most."""
    if _in_memory():
        signs = ((work, _renewer.sign_of(work)) for work in works)
        return {work: sign for work, sign in signs if sign is not None}
    if not works:
        return {}
    rows = (
        Lifesign.objects.filter(_any_of(works))
        .annotate(silent=_since("seen_at"), idle=_since("progress_at"))
        .values_list("kind", "uuid", "attempt", "silent", "idle", "partial")
        .order_by("kind", "uuid")
    )
    return {
        Work(kind=kind, uuid=uuid, attempt=attempt): Sign(
            silent_seconds=silent.total_seconds(), idle_seconds=(idle or silent).total_seconds(), partial=partial
        )
        for kind, uuid, attempt, silent, idle, partial in rows
    }


def _since(field: str) -> "ExpressionWrapper[Any]":
    return ExpressionWrapper(Now() - F(field), output_field=DurationField())


def report(work: Work, partial: Any) -> None:
    """The attempt came further: visible to everybody at once, although its transaction is open (AP-5). `partial` is a JSON value."""
    _renewer.report(work, partial)


def reported(work: Work) -> Any:
    """What the attempt, which runs in this process, reported last: also what is not written yet, or what an open snapshot can't see."""
    return _renewer.reported(work)


def keep(work: Work) -> None:
    """Renew the attempt's lease from now on, until `let_go`."""
    _renewer.add(work)


def let_go(work: Work) -> None:
    """The attempt ended in this process."""
    _renewer.drop(work)


def prune(*, older_than: timedelta = timedelta(days=1)) -> int:
    """Delete signs that nobody renews any more; how many there were."""
    return Lifesign.objects.filter(seen_at__lt=Now() - older_than).delete()[0]


def _in_memory() -> bool:
    return connection.vendor == "sqlite"


class _Renewer:
    """One thread a process, started with the first lease and idle without one. It also deletes the signs of work that ended."""

    _lock: threading.Lock
    _running: set[Work]
    _ended: dict[Work, float]
    _seen: dict[Work, float]
    _progress: dict[Work, tuple[float, Any]]
    _unwritten: set[Work]
    _thread: threading.Thread | None
    _wake: threading.Event

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """A forked worker has the parent's variables and none of its threads, one of which may have held the lock."""
        self._lock = threading.Lock()
        self._running, self._ended, self._seen = set(), {}, {}
        self._progress, self._unwritten = {}, set()
        self._thread, self._wake = None, threading.Event()

    def add(self, work: Work) -> None:
        with self._lock:
            self._running.add(work)
            self._seen.setdefault(work, time.monotonic())
            if self._thread is None and not _in_memory():
                self._thread = threading.Thread(target=self._renew_for_ever, name="lifesigns", daemon=True)
                self._thread.start()

    def drop(self, work: Work) -> None:
        """Its sign stays a little: whoever read just before that it runs must not find it dead."""
        with self._lock:
            self._running.discard(work)
            self._seen.pop(work, None)
            self._progress.pop(work, None)
            self._unwritten.discard(work)
            if _in_memory():
                self._ended = {ended: at for ended, at in self._ended.items() if not _is_over(at)}
            self._ended[work] = time.monotonic()

    def report(self, work: Work, partial: Any) -> None:
        """The latest report counts: a handler may give one for each row."""
        with self._lock:
            if work not in self._running:
                return
            self._progress[work] = (time.monotonic(), partial)
            if _in_memory():
                return
            self._unwritten.add(work)
        self._wake.set()

    def reported(self, work: Work) -> Any:
        with self._lock:
            return self._progress.get(work, (0.0, None))[1]

    def sign_of(self, work: Work) -> Sign | None:
        with self._lock:
            now, seen = time.monotonic(), self._seen.get(work)
            ended = self._ended.get(work)
            if seen is None:
                return None if ended is None or _is_over(ended) else Sign(silent_seconds=0.0, idle_seconds=0.0)
            at, partial = self._progress.get(work, (seen, None))
            silent = 0.0 if work in self._running else now - seen
            return Sign(silent_seconds=silent, idle_seconds=now - at, partial=partial)

    def remember(self, work: Work) -> None:
        with self._lock:
            self._seen[work] = time.monotonic()

    def remembers(self, work: Work) -> bool:
        """In memory an attempt lives as long as it runs in this process: the process can't outlive it."""
        with self._lock:
            seen = self._seen.get(work)
            return work in self._running or (seen is not None and time.monotonic() - seen < lease_seconds())

    def _renew_for_ever(self) -> None:
        while True:
            if self._wake.wait(lease_seconds() / RENEWALS_A_LEASE):
                # Those that come meanwhile are written with it.
                time.sleep(REPORTS_EVERY)
            self._wake.clear()
            try:
                self._renew()
                if not self._running:
                    # An idle process keeps no connection for this.
                    connection.close()
            except Exception as error:
                # Whatever it is, the thread must live: the next round tries again. A lease that runs out meanwhile is taken over, and
                # its finish refused.
                log.warning("lifesigns_not_renewed", exc_info=error)
                with suppress(DatabaseError, InterfaceError):
                    connection.close()

    def _renew(self) -> None:
        with self._lock:
            running = list(self._running)
            ended = [work for work, at in self._ended.items() if _is_over(at)]
        if running:
            Lifesign.objects.filter(_any_of(running)).update(seen_at=Now())
        self._write_reports()
        if ended:
            Lifesign.objects.filter(_any_of(ended)).delete()
            with self._lock:
                for work in ended:
                    self._ended.pop(work, None)

    def _write_reports(self) -> None:
        """One that could not be written is tried again in the next round, unless it never can be."""
        with self._lock:
            reports = {work: self._progress[work] for work in self._unwritten}
        for work, report in reports.items():
            try:
                Lifesign.objects.filter(_any_of([work])).update(progress_at=Now(), partial=report[1])
            except DataError as error:
                log.error("progress_not_written", exc_info=error)
            with self._lock:
                if self._progress.get(work) is report:
                    self._unwritten.discard(work)


def _is_over(ended: float) -> bool:
    """Whether the sign of work that ended then may go."""
    return time.monotonic() - ended >= lease_seconds() / RENEWALS_A_LEASE


def _any_of(works: Iterable[Work]) -> Q:
    """Their rows: one list of uuids for each attempt number, because thousands of alternatives take PostgreSQL a second to plan."""
    uuids: dict[tuple[str, int], list[UUID]] = {}
    for work in works:
        uuids.setdefault((work.kind, work.attempt), []).append(work.uuid)
    found = Q()
    for (kind, attempt), named in uuids.items():
        found |= Q(kind=kind, attempt=attempt, uuid__in=named)
    return found


_renewer = _Renewer()
os.register_at_fork(after_in_child=_renewer.start_afresh)
