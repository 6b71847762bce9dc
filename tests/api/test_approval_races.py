"""Approvals with others beside them: votes, repeats, deliveries and sweeps at the same instant, and workers that die or sleep (AP-6)."""

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db.models.functions import Now

from apps.activity.models import Entry
from apps.api import approval_listing, approvals, deciding, registry, runs, sweeps
from apps.api.deciding import Decision
from apps.api.models import ApiKey, Approval, KeyFamily, Lifesign, Vote
from apps.api.problems import Problem
from tests.api import factories, once
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.person import Person, make_person
from tests.api.probe import CHANGE, WRITE
from tests.api.together import at_once

pytestmark = pytest.mark.alone

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def machine(postgres_url: str, settings: Any) -> Iterator[Machine]:
    """Its writes are queued; the test delivers the tasks itself."""
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    with registry.using(once.make_once()):
        yield factories.make_machine(scopes=[WRITE], requires_approval=True)


def make_approver() -> Person:
    return make_person(permissions=[CHANGE, deciding.PERMISSION])


def asked(machine: Machine, **body: Any) -> Approval:
    return Approval.objects.get(pk=machine.call("once.count", body).json()["approval_id"])


def decide(who: Person, approval: Approval, *, approve: bool = True, version: int = 1) -> str:
    """The state that the vote led to, or the reason why it was refused."""
    try:
        decision = Decision(approve=approve, version=version)
        return str(deciding.decide(who.ref, approval.pk, decision, impersonated=False).value)
    except Problem as problem:
        return str(problem.context.get("reason"))


def approved(machine: Machine, **body: Any) -> Approval:
    approval = asked(machine, **body)
    assert decide(make_approver(), approval) == "approved"
    return approval


def state(approval: Approval) -> tuple[str, str]:
    found = Approval.objects.get(pk=approval.pk)
    return found.state, found.code


# --- At the same instant ----------------------------------------------------------------------------------------------


def test_20_parallel_repeats_of_one_operation_are_one_approval(machine: Machine) -> None:
    def ask() -> Any:
        return Machine(text=machine.text).call("once.count", {}).json()["approval_id"]

    assert len(set(at_once(*[ask] * 20))) == 1
    assert Approval.objects.count() == 1


def test_two_last_votes_at_the_same_instant_approve_and_never_leave_it_pending(machine: Machine) -> None:
    first, second = make_approver(), make_approver()
    ApiKey.objects.update(approvers_needed=2)
    for number in range(40):
        approval = asked(machine, fail=str(number))
        found = at_once(lambda it=approval: decide(first, it), lambda it=approval: decide(second, it))  # type: ignore[misc]
        assert Counter(found) == {"pending": 1, "approved": 1}
        assert state(approval) == ("approved", "")
        approvals.cancel(approval, actor=factories.SYSTEM)


def test_a_click_twice_is_one_vote(machine: Machine) -> None:
    approver, approval = make_approver(), asked(machine)
    ApiKey.objects.update(approvers_needed=2)
    Approval.objects.update(approvals_needed=2)
    assert Counter(at_once(*[lambda: decide(approver, approval)] * 6)) == {"pending": 1, "not_pending": 5}
    assert (Approval.objects.get().approvals, Vote.objects.count()) == (1, 1)
    assert Entry.objects.filter(action="api.approval_decided").count() == 1


def test_a_yes_and_a_no_at_once_are_one_decision(machine: Machine) -> None:
    for number in range(10):
        approval = asked(machine, fail=str(number))
        yes, no = make_approver(), make_approver()
        found = at_once(
            lambda who=yes, it=approval: decide(who, it),  # type: ignore[misc]
            lambda who=no, it=approval: decide(who, it, approve=False),  # type: ignore[misc]
        )
        assert sorted(found)[-1] in ("not_pending", "rejected")
        assert Counter(found)["not_pending"] == 1
        assert state(approval)[0] in found
        assert Vote.objects.filter(approval=approval).count() == 1


def test_a_cancellation_and_a_start_at_once_are_one_move(machine: Machine) -> None:
    for number in range(10):
        before, approval = KeyFamily.objects.count(), approved(machine, gate="", hold=str(number))
        cancel = {"approval_id": str(approval.pk)}
        at_once(
            lambda it=approval: runs.run(it.pk),  # type: ignore[misc]
            lambda body=cancel: Machine(text=machine.text).call("system.cancel_approval", body),  # type: ignore[misc]
        )
        ended, _ = state(approval)
        assert ended in ("done", "cancelled")
        assert KeyFamily.objects.count() - before == (ended == "done")


def test_a_task_that_is_delivered_ten_times_runs_once(machine: Machine) -> None:
    before, approval = KeyFamily.objects.count(), approved(machine)
    at_once(*[lambda: runs.run(approval.pk)] * 10)
    assert (state(approval), KeyFamily.objects.count() - before) == (("done", ""), 1)
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1


def test_two_sweeps_end_a_row_with_one_entry(machine: Machine) -> None:
    for number in range(5):
        asked(machine, fail=str(number))
    Approval.objects.update(expires_at=Now())
    found = at_once(*[lambda: sweeps.sweep_approvals(is_server=True).ended] * 3)
    assert (sum(found), Entry.objects.filter(action="api.approval_expired").count()) == (5, 5)


def test_a_vote_and_the_sweep_at_the_last_instant_are_one_end(machine: Machine) -> None:
    approver, approval = make_approver(), asked(machine)
    Approval.objects.update(expires_at=Now())
    decided, _ = at_once(lambda: decide(approver, approval), lambda: sweeps.sweep_approvals(is_server=True))
    assert (decided, state(approval)) == ("not_pending", ("expired", ""))


# --- Workers that die or sleep ----------------------------------------------------------------------------------------


@pytest.fixture
def start(process_environment: dict[str, str]) -> Iterator[Start]:
    """Start a worker that is delivered these approvals."""
    started: list[subprocess.Popen[str]] = []

    def run(*uuids: Any) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.api.approval_process", json.dumps([str(uuid) for uuid in uuids])],
            env=process_environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


def silence(approval: Approval) -> None:
    """As after a minute without a heartbeat."""
    Lifesign.objects.filter(uuid=approval.pk).update(seen_at=Now() - once_a_minute())


def once_a_minute() -> Any:
    from datetime import timedelta

    return timedelta(seconds=61)


@pytest.mark.parametrize("point", ["preview", "before", "after"])
def test_a_killed_worker_leaves_no_effect_and_a_sweep_says_interrupted(
    machine: Machine, start: Start, tmp_path: Path, point: str
) -> None:
    gate = Gate(tmp_path)
    approval = approved(machine, gate=str(gate.path), hold=point)
    Path(f"{gate.path}.{point}").unlink(missing_ok=True)
    before = KeyFamily.objects.count()
    with gate.closed():
        process = start(approval.pk)
        gate.wait_for(point)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert state(approval) == ("running", "")
    silence(approval)
    found = approval_listing.describe(Approval.objects.select_related("key").get(pk=approval.pk))
    assert (found["status"], found["code"]) == ("failed", "interrupted")
    assert state(approval) == ("running", "")  # reading wrote nothing
    assert sweeps.sweep_approvals(is_server=True).ended == 1
    assert (state(approval), KeyFamily.objects.count()) == (("failed", "interrupted"), before)
    runs.run(approval.pk)
    assert KeyFamily.objects.count() == before


def test_a_worker_killed_after_its_commit_is_done(machine: Machine, start: Start, tmp_path: Path) -> None:
    gate = Gate(tmp_path)
    approval = approved(machine, gate=str(gate.path), hold="committed")
    before = KeyFamily.objects.count()
    with gate.closed():
        process = start(approval.pk)
        gate.wait_for("committed")
        process.send_signal(signal.SIGKILL)
        process.wait()
    silence(approval)
    sweeps.sweep_approvals(is_server=True)
    assert (state(approval), KeyFamily.objects.count()) == (("done", ""), before + 1)


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_worker_that_slept_past_its_heartbeat_writes_nothing(
    machine: Machine, start: Start, tmp_path: Path, point: str
) -> None:
    gate = Gate(tmp_path)
    approval = approved(machine, gate=str(gate.path), hold=point)
    before = KeyFamily.objects.count()
    with gate.closed():
        process = start(approval.pk)
        gate.wait_for(point)
        process.send_signal(signal.SIGSTOP)
        silence(approval)
        assert sweeps.sweep_approvals(is_server=True).ended == 1
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 0
    assert (state(approval), KeyFamily.objects.count()) == (("failed", "interrupted"), before)
    assert Entry.objects.filter(action="once.counted").count() == 0


def test_a_row_that_a_paused_process_holds_keeps_no_sweep_from_the_others(machine: Machine, postgres_url: str) -> None:
    held = [approved(machine, hold="sent"), approved(machine, hold="run")]
    assert approvals.start(Approval.objects.select_related("key").get(pk=held[1].pk)) is not None
    silence(held[1])
    late, lost = asked(machine, hold="late"), approved(machine, hold="lost")
    Approval.objects.filter(pk=late.pk).update(expires_at=Now())
    Approval.objects.update(sent_at=None)
    with psycopg.connect(postgres_url) as paused:
        paused.execute("UPDATE api_approval SET code = code WHERE uuid = ANY(%s)", [[each.pk for each in held]])
        with ThreadPoolExecutor(1) as pool:
            sweep = pool.submit(at_once, lambda: sweeps.sweep_approvals(is_server=True))
            try:
                (found,) = sweep.result(timeout=10)
            finally:
                paused.rollback()
    assert (found.ended, found.sent) == (1, 1)
    assert (state(late), Approval.objects.get(pk=lost.pk).sent_at is None) == (("expired", ""), False)
    found = sweeps.sweep_approvals(is_server=True)
    assert (found.ended, found.sent, state(held[1])) == (1, 1, ("failed", "interrupted"))


def test_a_broker_that_lost_its_queue_loses_no_approval(machine: Machine, settings: Any, start: Start) -> None:
    before, approval = KeyFamily.objects.count(), approved(machine)
    Approval.objects.update(sent_at=None)
    settings.API_SEND_TASK = "apps.api.tasks.in_thread"
    assert sweeps.sweep_approvals(is_server=True).sent == 1
    wait_until(lambda: state(approval) == ("done", ""))
    assert KeyFamily.objects.count() == before + 1


def test_a_restart_with_ten_waiting_ends_the_three_past_their_time_and_runs_the_rest(
    machine: Machine, settings: Any
) -> None:
    waiting = [approved(machine, fail="", gate="", hold=str(number)) for number in range(7)]
    late = [asked(machine, hold=f"late {number}") for number in range(3)]
    Approval.objects.filter(pk__in=[approval.pk for approval in late]).update(expires_at=Now())
    Approval.objects.update(sent_at=None)
    before = KeyFamily.objects.count()
    settings.API_SEND_TASK = "apps.api.tasks.in_thread"
    found = sweeps.sweep_approvals(is_server=True)
    assert (found.ended, found.sent) == (3, 7)
    wait_until(lambda: {state(approval)[0] for approval in waiting} == {"done"})
    assert {state(approval)[0] for approval in late} == {"expired"}
    assert KeyFamily.objects.count() == before + 7


def test_a_heartbeat_without_progress_for_a_quarter_of_an_hour_is_interrupted(machine: Machine) -> None:
    approval = approved(machine)
    started = approvals.start(Approval.objects.select_related("key").get(pk=approval.pk))
    assert started is not None
    Lifesign.objects.filter(uuid=approval.pk).update(progress_at=Now() - once_a_minute() * 16)
    assert sweeps.sweep_approvals(is_server=True).ended == 1
    assert state(approval) == ("failed", "interrupted")
