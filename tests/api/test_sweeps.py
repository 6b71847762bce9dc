"""Sweeping: what is past its time goes, what is needed stays, and an error stops no server."""

import threading
import time
from datetime import timedelta
from io import StringIO
from uuid import uuid4

import pytest
import structlog
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from apps.api import sweeps
from apps.api.models import Confirmation, IdempotencyRecord, Lifesign
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

Record = IdempotencyRecord.State


def make_records(**ages: timedelta) -> None:
    """A record of each state, so old."""
    for name, age in ages.items():
        record = factories.make_record(state=Record(name), key=f"{name} {age}")
        IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=timezone.now() - age)
        IdempotencyRecord.objects.filter(pk=record.pk, state=Record.DONE).update(finished_at=timezone.now() - age)


def run() -> str:
    out = StringIO()
    call_command("sweep", stdout=out)
    # What comes after them is that of approvals and of other apps.
    return out.getvalue().partition("approval_inputs 0\n")[0]


def test_the_command_deletes_what_is_past_its_time_and_says_how_much() -> None:
    old, young = timedelta(hours=73), timedelta(hours=71)
    make_records(done=old, waiting=old, running=old, unknown=old)
    make_records(done=young, waiting=young)
    for days in (31, 29):
        factories.make_confirmation(expires_at=timezone.now() - timedelta(days=days))
    for days in (2, 0):
        Lifesign.objects.create(kind="call", uuid=uuid4(), attempt=1, seen_at=timezone.now() - timedelta(days=days))

    # The command can't tell on SQLite whether the server still runs the old call: only the server forgets that one.
    unsure = ["running"] if connection.vendor == "sqlite" else []
    records = 3 - len(unsure)
    assert run() == f"lost_calls 0\nidempotency_records {records}\nconfirmations 1\nlifesigns 1\n"
    assert sorted(IdempotencyRecord.objects.values_list("state", flat=True)) == sorted(
        [*unsure, "done", "unknown", "waiting"]
    )
    assert (Confirmation.objects.count(), Lifesign.objects.filter(kind="call").count()) == (1, 1)
    assert run() == "lost_calls 0\nidempotency_records 0\nconfirmations 0\nlifesigns 0\n"


def test_the_server_itself_forgets_the_old_call_of_a_dead_worker() -> None:
    make_records(running=timedelta(hours=73))
    assert sweeps.sweep(is_server=True).idempotency_records == 1


def test_the_settings_say_how_long() -> None:
    make_records(done=timedelta(hours=3))
    factories.make_confirmation(expires_at=timezone.now() - timedelta(days=3))
    factories.set_setting("idempotency_retention", 2)
    factories.set_setting("confirmation_retention", 2)
    assert run() == "lost_calls 0\nidempotency_records 1\nconfirmations 1\nlifesigns 0\n"


def test_an_error_is_logged_and_the_next_round_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    rounds = threading.Semaphore(0)

    def broken(*, is_server: bool) -> sweeps.Swept:
        rounds.release()
        raise RuntimeError("broken")

    monkeypatch.setattr(sweeps, "sweep", broken)
    with structlog.testing.capture_logs() as logged:
        ended = sweeps.start(every=timedelta(milliseconds=5))
        came = [rounds.acquire(timeout=10) for _ in range(3)]
        ended.set()
    assert came == [True] * 3
    assert {entry["event"] for entry in logged} == {"not_swept"}


def test_a_server_finds_the_external_calls_whose_worker_is_gone() -> None:
    record = factories.make_record(state=Record.RUNNING, external=True)
    factories.make_record(state=Record.RUNNING)
    assert sweeps.sweep(is_server=True).lost_calls == 1
    assert IdempotencyRecord.objects.get(state=Record.UNKNOWN) == record


def test_a_command_takes_no_call_for_lost_whose_signs_it_cannot_see() -> None:
    factories.make_record(state=Record.RUNNING, external=True)
    assert f"lost_calls {0 if connection.vendor == 'sqlite' else 1}\n" in run()


def test_the_counts_of_a_round_are_logged() -> None:
    make_records(done=timedelta(hours=73))
    with structlog.testing.capture_logs() as logged:
        ended = sweeps.start(every=timedelta(hours=1))
        while not logged:
            time.sleep(0.01)
        ended.set()
    (entry,) = logged
    assert (entry["event"], entry["idempotency_records"], entry["confirmations"]) == ("swept", 1, 0)
