"""Leases (ID-3): renewed while the work runs in this process, over soon after it ends or the process dies."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import DatabaseError, connection
from django.db.models.functions import Now

from apps.api import lifesigns, registry
from apps.api.lifesigns import Work
from apps.api.models import IdempotencyRecord, KeyFamily, Lifesign
from tests.api import factories, once
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.probe import WRITE

pytestmark = [pytest.mark.sqlite, pytest.mark.alone]

LEASE = 1


@pytest.fixture
def renewer(transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[lifesigns._Renewer]:
    """A renewer of this test's own with a short lease: its thread forgets the work when the test ends."""
    settings.API_LEASE_SECONDS = LEASE
    fresh = lifesigns._Renewer()
    monkeypatch.setattr(lifesigns, "_renewer", fresh)
    yield fresh
    with fresh._lock:
        fresh._running.clear()
    # Its next round closes its connection.
    time.sleep(LEASE / lifesigns.RENEWALS_A_LEASE * 2)


@pytest.fixture
def machine(renewer: lifesigns._Renewer) -> Iterator[Machine]:
    with registry.using(once.make_once()):
        yield factories.make_machine(scopes=[WRITE])


def make_work(attempt: int = 1, **fields: Any) -> Work:
    return Work(kind="call", uuid=uuid4(), attempt=attempt, **fields)


def needs_postgresql() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("on SQLite the signs are in memory")


def end_lease(work: Work) -> None:
    if connection.vendor == "postgresql":
        Lifesign.objects.filter(uuid=work.uuid).update(seen_at=Now() - timedelta(seconds=LEASE + 1))
    else:
        lifesigns._renewer._seen[work] = time.monotonic() - LEASE - 1


def test_a_first_sign_holds_for_the_lease_and_no_longer(renewer: Any) -> None:
    work = make_work()
    assert not lifesigns.is_alive(work)
    lifesigns.begin(work)
    assert lifesigns.is_alive(work)
    end_lease(work)
    assert not lifesigns.is_alive(work)


def test_a_sign_counts_for_its_attempt_alone(renewer: Any) -> None:
    first = make_work()
    second = Work(kind="call", uuid=first.uuid, attempt=2)
    lifesigns.begin(first)
    assert not lifesigns.is_alive(second)
    assert not lifesigns.is_alive(Work(kind="approval", uuid=first.uuid, attempt=1))
    end_lease(first)
    lifesigns.begin(second)
    assert (lifesigns.is_alive(first), lifesigns.is_alive(second)) == (False, True)


def test_a_late_end_of_an_earlier_attempt_takes_no_sign_of_the_later_one(renewer: Any) -> None:
    first = make_work()
    second = Work(kind="call", uuid=first.uuid, attempt=2)
    lifesigns.begin(first)
    lifesigns.keep(first)
    end_lease(first)
    lifesigns.begin(second)
    lifesigns.keep(second)
    lifesigns.let_go(first)
    if connection.vendor == "postgresql":
        wait_until(lambda: not renewer._ended)
    assert lifesigns.is_alive(second)
    assert not lifesigns.is_alive(first)


def test_kept_work_outlives_its_lease_and_what_ended_does_not(renewer: Any) -> None:
    work = make_work()
    lifesigns.begin(work)
    lifesigns.keep(work)
    end_lease(work)
    wait_until(lambda: lifesigns.is_alive(work))
    lifesigns.let_go(work)
    wait_until(lambda: not Lifesign.objects.filter(uuid=work.uuid).exists())
    assert not lifesigns.is_alive(work)


def test_many_works_are_renewed_and_only_those(renewer: Any) -> None:
    needs_postgresql()
    ours, theirs = [make_work() for _ in range(5)], make_work()
    for work in [*ours, theirs]:
        lifesigns.begin(work)
    for work in ours:
        lifesigns.keep(work)
    for work in [*ours, theirs]:
        end_lease(work)
    wait_until(lambda: all(map(lifesigns.is_alive, ours)))
    assert not lifesigns.is_alive(theirs)


def test_the_renewer_lives_through_a_database_that_is_away(renewer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_postgresql()
    work, ended = make_work(), make_work()
    lifesigns.begin(work)
    lifesigns.begin(ended)
    asked: list[Exception] = []
    renew = renewer._renew

    def fail_at_first() -> None:
        if len(asked) < 3:
            asked.append(DatabaseError("away") if len(asked) else RuntimeError("something odd"))
            raise asked[-1]
        renew()

    monkeypatch.setattr(renewer, "_renew", fail_at_first)
    lifesigns.keep(work)
    lifesigns.keep(ended)
    lifesigns.let_go(ended)
    end_lease(work)
    wait_until(lambda: len(asked) == 3 and lifesigns.is_alive(work))
    wait_until(lambda: not Lifesign.objects.filter(uuid=ended.uuid).exists())


def test_the_renewer_gets_another_connection_when_its_own_was_killed(renewer: Any) -> None:
    needs_postgresql()
    work = make_work()
    lifesigns.begin(work)
    lifesigns.keep(work)
    for _ in range(2):
        end_lease(work)
        wait_until(lambda: lifesigns.is_alive(work))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )


def test_a_sign_that_could_not_be_deleted_is_deleted_in_the_next_round(
    renewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_postgresql()
    work = make_work()
    lifesigns.begin(work)
    renewer._ended[work] = 0.0
    with monkeypatch.context() as patched:
        patched.setattr(Lifesign.objects, "filter", _away)
        with pytest.raises(DatabaseError):
            renewer._renew()
    renewer._renew()
    assert not Lifesign.objects.exists()
    assert not renewer._ended


def _away(*_: object, **__: object) -> None:
    raise DatabaseError("away")


def test_a_forked_process_has_a_renewer_of_its_own_even_when_the_lock_was_held(renewer: Any) -> None:
    needs_postgresql()
    os.register_at_fork(after_in_child=renewer.start_afresh)
    work = make_work()
    lifesigns.begin(work)
    lifesigns.keep(work)
    reads, writes = os.pipe()
    with renewer._lock:
        child = os.fork()
        if child == 0:
            # No database here: its connection belongs to the parent.
            os.write(writes, b"held" if renewer._lock.locked() or renewer._running or renewer._thread else b"free")
            os._exit(0)
    assert os.read(reads, 4) == b"free"
    os.waitpid(child, 0)
    assert work in renewer._running


def test_signs_that_nobody_renews_are_pruned(renewer: Any) -> None:
    old, new = make_work(), make_work()
    for work, age in ((old, 25), (new, 23)):
        Lifesign.objects.create(kind=work.kind, uuid=work.uuid, attempt=1, seen_at=Now() - timedelta(hours=age))
    assert lifesigns.prune() == 1
    assert Lifesign.objects.get().uuid == new.uuid


# --- Reports ------------------------------------------------------------------------------------------------------------


def test_a_report_that_could_not_be_written_is_written_in_the_next_round_and_costs_no_heartbeat(
    renewer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_postgresql()
    work = make_work()
    lifesigns.begin(work)
    renewer._running.add(work)  # by hand: no thread beside it
    lifesigns.report(work, 0.1)
    end_lease(work)
    with monkeypatch.context() as patched:
        patched.setattr(renewer, "_write_reports", _away)
        with pytest.raises(DatabaseError):
            renewer._renew()
    assert lifesigns.is_alive(work)
    renewer._renew()
    assert _partial(work) == 0.1


def test_a_report_during_the_write_of_an_earlier_one_is_written_too(renewer: Any) -> None:
    needs_postgresql()
    work = make_work()
    lifesigns.begin(work)
    renewer._running.add(work)
    lifesigns.report(work, 0.1)
    with connection.execute_wrapper(_once_before(lambda: lifesigns.report(work, 0.2))):
        renewer._write_reports()
    renewer._write_reports()
    assert (_partial(work), renewer._unwritten) == (0.2, set())


def test_a_report_that_no_database_can_store_stands_in_no_other_ones_way(renewer: Any) -> None:
    needs_postgresql()
    works = [make_work() for _ in range(3)]
    for work in works:
        lifesigns.begin(work)
        renewer._running.add(work)
        lifesigns.report(work, "a\x00b" if work is works[1] else 0.5)
    renewer._renew()
    assert [_partial(work) for work in works] == [0.5, None, 0.5]
    assert not renewer._unwritten


def test_work_that_ends_between_the_report_and_its_write_is_left_alone(renewer: Any) -> None:
    needs_postgresql()
    work = make_work()
    lifesigns.begin(work)
    renewer._running.add(work)
    lifesigns.report(work, 0.1)
    with connection.execute_wrapper(_once_before(lambda: lifesigns.let_go(work))):
        renewer._write_reports()
    assert not any((renewer._unwritten, renewer._progress, renewer._running))


def test_the_last_report_is_known_in_its_process_before_it_is_written(renewer: Any) -> None:
    work = make_work()
    lifesigns.report(work, 0.1)  # it does not run yet
    assert lifesigns.reported(work) is None
    renewer._running.add(work)
    lifesigns.report(work, 0.2)
    assert lifesigns.reported(work) == 0.2
    lifesigns.let_go(work)
    assert lifesigns.reported(work) is None


def _partial(work: Work) -> Any:
    sign = lifesigns.of(work)
    return None if sign is None else sign.partial


def _once_before(act: Callable[[], None]) -> Any:
    """A wrapper of statements that does something before the first one."""
    left = [act]

    def wrap(execute: Any, *arguments: Any) -> Any:
        if left:
            left.pop()()
        return execute(*arguments)

    return wrap


# --- Through the gate -----------------------------------------------------------------------------------------------------------------


def test_a_call_that_runs_longer_than_its_lease_keeps_its_claim(machine: Machine, tmp_path: Any) -> None:
    needs_postgresql()
    gate, before = Gate(tmp_path), KeyFamily.objects.count()
    body = {"gate": str(gate.path), "hold": "after", "idempotency_key": "k"}
    answers: list[Any] = []
    with gate.closed():
        thread = _in_thread(lambda: answers.append(machine.call("once.count", body)))
        gate.wait_for("after")
        first = Lifesign.objects.get().seen_at
        # Renewed for longer than the lease lasts from its first sign.
        wait_until(lambda: Lifesign.objects.get().seen_at > first + timedelta(seconds=1.5 * LEASE))
        twin = Machine(text=machine.text).call("once.count", body)
    thread.join(30)
    assert twin.json()["code"] == "idempotency_in_progress"
    assert answers[0].status_code == 200
    assert (IdempotencyRecord.objects.get().attempt, KeyFamily.objects.count()) == (1, before + 1)
    wait_until(lambda: not Lifesign.objects.exists())


def test_a_finished_call_lets_go_of_its_lease(machine: Machine, renewer: Any) -> None:
    for fail, key in (("", "a"), ("refuse", "b"), ("break", "c")):
        machine.call("once.count", {"fail": fail, "idempotency_key": key})
    assert not renewer._running
    if connection.vendor == "sqlite":
        assert not renewer._seen
    wait_until(lambda: not Lifesign.objects.exists())


def _in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread
