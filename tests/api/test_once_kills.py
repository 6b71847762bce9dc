"""A process that dies or stops at each point of a write: the effect exists once, the entry once, and the retry is answered (ID-3)."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.activity.models import Entry
from apps.api import registry
from apps.api.models import Confirmation, IdempotencyRecord, KeyFamily
from tests.api import factories, once
from tests.api.factories import Machine
from tests.api.held import wait_until, waiting_for_a_lock
from tests.api.once import Gate
from tests.api.probe import WRITE

pytestmark = pytest.mark.alone

LEASE = 2

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def machine(postgres_url: str, settings: Any) -> Iterator[Machine]:
    settings.API_LEASE_SECONDS = LEASE
    with registry.using(once.make_once()):
        yield factories.make_machine(scopes=[WRITE])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    folder = tmp_path / "mails"
    folder.mkdir()
    return folder


@pytest.fixture
def start(process_environment: dict[str, str], mails: Path) -> Iterator[Start]:
    """Start a process that sends one call."""
    started: list[subprocess.Popen[str]] = []

    def run(machine: Machine, tool: str, body: dict[str, Any]) -> "subprocess.Popen[str]":
        arguments = json.dumps({"text": machine.text, "tool": tool, "body": body})
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.api.once_process", arguments],
            env={**process_environment, "LEASE": str(LEASE), "MAILS": str(mails)},
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


def answer_of(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, _ = process.communicate(timeout=60)
    return dict(json.loads(out.strip().splitlines()[-1]))


def retry_until_answered(again: Callable[[], dict[str, Any]], *, seconds: float = LEASE + 20) -> dict[str, Any]:
    """Repeat the call while the first one still counts as running."""
    deadline = time.monotonic() + seconds
    while True:
        answer = again()
        if json.loads(answer["body"]).get("code") not in ("idempotency_in_progress", "conflict"):
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.2)


def effects(before: int) -> int:
    return KeyFamily.objects.count() - before


@pytest.mark.parametrize("point", ["preview", "before", "after", "committed"])
def test_a_killed_write_happens_once_and_its_retry_is_answered(
    machine: Machine, gate: Gate, start: Start, point: str
) -> None:
    body = {
        "gate": str(gate.path),
        "hold": point,
        "idempotency_key": "k",
        "confirm_token": held_code(machine, gate, point),
    }
    before = KeyFamily.objects.count()
    with gate.closed():
        process = start(machine, "once.count", body)
        gate.wait_for(point)
        process.send_signal(signal.SIGKILL)
        process.wait()
    answer = retry_until_answered(lambda: answer_of(start(machine, "once.count", body)))
    assert answer["status"] == 200
    assert answer["replayed"] is (point == "committed")
    assert effects(before) == 1
    assert Entry.objects.filter(action="once.counted").count() == 1
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1
    assert Confirmation.objects.get().state == "used"


def test_a_write_killed_in_its_commit_happens_once(machine: Machine, gate: Gate, start: Start) -> None:
    body = {"idempotency_key": "k"}
    before = KeyFamily.objects.count()
    with commit_held() as let_go:
        process = start(machine, "once.count", body)
        wait_until(lambda: waiting_for_a_lock() == 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
        let_go()
    answer = retry_until_answered(lambda: answer_of(start(machine, "once.count", body)))
    assert answer["status"] == 200
    assert effects(before) == 1
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok").count() == 1


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_write_paused_past_its_lease_writes_nothing_when_it_goes_on(
    machine: Machine, gate: Gate, start: Start, point: str
) -> None:
    body = {"gate": str(gate.path), "hold": point, "idempotency_key": "k"}
    before = KeyFamily.objects.count()
    with gate.closed():
        process = start(machine, "once.count", body)
        gate.wait_for(point)
        process.send_signal(signal.SIGSTOP)
    answer = retry_until_answered(lambda: answer_of(start(machine, "once.count", body)))
    assert (answer["status"], answer["replayed"]) == (200, False)
    process.send_signal(signal.SIGCONT)
    late = answer_of(process)
    assert json.loads(late["body"])["code"] == "idempotency_in_progress"
    assert effects(before) == 1
    assert IdempotencyRecord.objects.get().attempt == 2
    assert Entry.objects.filter(action="once.counted").count() == 1


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_killed_mail_is_unknown_and_never_sent_twice(
    machine: Machine, gate: Gate, start: Start, mails: Path, point: str
) -> None:
    body = {"gate": str(gate.path), "hold": point, "idempotency_key": "k"}
    prompt = json.loads(answer_of(start(machine, "once.send", body))["body"])
    body["confirm_token"] = prompt["confirm_token"]
    with gate.closed():
        process = start(machine, "once.send", body)
        gate.wait_for(point)
        process.send_signal(signal.SIGKILL)
        process.wait()
    answer = retry_until_answered(lambda: answer_of(start(machine, "once.send", body)))
    assert json.loads(answer["body"])["code"] == "idempotency_outcome_unknown"
    assert len(os.listdir(mails)) == (1 if point == "after" else 0)
    assert IdempotencyRecord.objects.get().state == "unknown"
    assert Confirmation.objects.get().state == "used"


def held_code(machine: Machine, gate: Gate, point: str) -> str:
    """A code for `once.count`: the tool is not dangerous, so it is held by hand."""
    from apps.api import canonical
    from tests.api.held import hold

    received = {"gate": str(gate.path), "hold": point}
    return hold(machine, "once.count", canonical.digest("once.count", received), fingerprint="always the same")


def commit_held() -> Any:
    from tests.api.held import commit_held as held

    return held(connection)
