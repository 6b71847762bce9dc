"""How far an approved run came (AP-5): seen by everybody while the handler's transaction is open, kept when it ends, and cheap."""

import json
import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.api import (
    approval_listing,
    approval_state,
    approvals,
    guard,
    lifesigns,
    registry,
    runs,
)
from apps.api.models import Approval, KeyFamily, Lifesign
from tests.api import factories
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.probe import WRITE
from tests.api.slow import REPORTS, make_slow
from tests.api.test_approval_races import decide, make_approver

pytestmark = [pytest.mark.sqlite, pytest.mark.alone]


@pytest.fixture
def machine(transactional_db: None, settings: Any) -> Iterator[Machine]:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    with registry.using(make_slow()):
        yield factories.make_machine(scopes=[WRITE], requires_approval=True)


@pytest.fixture
def renewer(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[lifesigns._Renewer]:
    """A renewer of this test's own."""
    fresh = lifesigns._Renewer()
    monkeypatch.setattr(lifesigns, "_renewer", fresh)
    yield fresh
    fresh._running.clear()


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    """A server: another process where production has several, this one where SQLite has only one."""
    if connection.vendor == "sqlite":
        return str(request.getfixturevalue("live_server").url)
    return str(request.getfixturevalue("start_program")("granian").url)


def approved(machine: Machine, **body: Any) -> Approval:
    approval = Approval.objects.get(pk=machine.call("slow.import", body).json()["approval_id"])
    assert decide(make_approver(), approval) == "approved"
    return approval


def get(address: str, machine: Machine, approval: Approval) -> dict[str, Any]:
    """`system.get_approval` over HTTP."""
    asked = urllib.request.Request(  # noqa: S310 - our own server
        f"{address}/api/v1/tools/system.get_approval",
        json.dumps({"approval_id": str(approval.pk)}).encode(),
        {"Content-Type": "application/json", **machine.headers()},
    )
    with urllib.request.urlopen(asked, timeout=10) as answer:  # noqa: S310 - our own server
        found: dict[str, Any] = json.loads(answer.read())
    return found


def described(approval: Approval) -> dict[str, Any]:
    return approval_listing.describe(Approval.objects.select_related("key").get(pk=approval.pk))


def in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_a_run_that_stands_at_40_percent_reads_so_while_its_transaction_is_open(
    machine: Machine, address: str, tmp_path: Path
) -> None:
    gate, before = Gate(tmp_path), KeyFamily.objects.count()
    approval = approved(machine, gate=str(gate.path))
    with gate.closed():
        worker = in_thread(lambda: runs.run(approval.pk))
        gate.wait_for("40")
        wait_until(lambda: get(address, machine, approval)["progress"] is not None, seconds=5)
        meanwhile = get(address, machine, approval)
        assert KeyFamily.objects.count() == before  # nothing of it is committed
    worker.join(30)
    after = get(address, machine, approval)

    assert (meanwhile["status"], meanwhile["progress"], meanwhile["result"]) == ("running", 0.4, None)
    assert meanwhile["partial"] == {"done": 2, "total": 5, "names": ["Aé"]}
    assert (after["status"], after["progress"], after["result"]) == ("done", 1.0, {"imported": 5})
    assert after["partial"] == {"done": 4, "total": 5, "names": ["Aé", "B"]}


@pytest.mark.parametrize(("end", "code"), [("refuse", "slow_refused"), ("break", "internal_error")])
def test_a_run_that_fails_keeps_how_far_it_came(machine: Machine, end: str, code: str) -> None:
    approval = approved(machine, end=end)
    runs.run(approval.pk)
    found = described(approval)
    assert (found["status"], found["code"], found["progress"]) == ("failed", code, 0.8)
    assert found["partial"]["done"] == 4


@pytest.mark.parametrize("odd", REPORTS)
def test_a_partial_result_that_can_not_be_kept_raises_in_the_handler(machine: Machine, odd: str) -> None:
    before, approval = KeyFamily.objects.count(), approved(machine, odd=odd)
    runs.run(approval.pk)
    found = described(approval)
    assert (found["status"], found["code"], found["partial"]) == ("failed", "internal_error", None)
    assert KeyFamily.objects.count() == before


def test_many_reports_in_a_short_time_cost_few_writes(
    machine: Machine, renewer: lifesigns._Renewer, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[None] = []
    write = renewer._write_reports

    def count() -> None:
        rounds.append(None)
        write()

    monkeypatch.setattr(renewer, "_write_reports", count)
    approval = approved(machine, many=20_000)
    runs.run(approval.pk)
    assert described(approval)["partial"]["done"] == 4
    assert len(rounds) <= 10


def test_a_report_after_the_end_changes_nothing(machine: Machine, renewer: lifesigns._Renewer) -> None:
    approval = approved(machine)
    runs.run(approval.pk)
    work = approval_state.work_of(Approval.objects.get(pk=approval.pk))
    before = described(approval)
    lifesigns.report(work, 0.1)
    assert lifesigns.reported(work) is None
    assert not renewer._unwritten
    assert described(approval) == before


def test_another_attempt_begins_without_what_the_last_one_reported(machine: Machine) -> None:
    approval = approved(machine)
    Approval.objects.update(attempt=6)
    Lifesign.objects.create(kind="approval", uuid=approval.pk, attempt=6, seen_at="2026-01-01T00:00Z", partial=0.9)
    started = approvals.start(Approval.objects.get(pk=approval.pk))
    assert started is not None
    assert (started.attempt, approval_state.partial_of(started)) == (7, None)


def test_who_read_the_row_just_before_the_end_does_not_take_the_run_for_lost(machine: Machine) -> None:
    before, approval = KeyFamily.objects.count(), approved(machine)
    Approval.objects.filter(pk=approval.pk).update(attempt=1, state="running")
    seen = Approval.objects.select_related("key").get(pk=approval.pk)
    Approval.objects.filter(pk=approval.pk).update(attempt=0, state="approved")
    with guard.read_only():
        Approval.objects.count()  # the snapshot is taken
        in_thread(lambda: runs.run(approval.pk)).join(30)
        found = approval_listing.describe(seen)
    assert found["status"] == "running"
    assert (described(approval)["status"], KeyFamily.objects.count()) == ("done", before + 1)
