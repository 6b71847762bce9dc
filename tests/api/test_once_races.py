"""Callers that race for one key or one code: one run, and every other caller is told what became of it (G5, G19)."""

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.api import canonical, registry
from apps.api.models import Confirmation, KeyFamily, Setting
from tests.api import factories, held, once
from tests.api.factories import Machine
from tests.api.once import Gate
from tests.api.probe import WRITE
from tests.api.together import call_together

pytestmark = pytest.mark.alone

Together = Callable[[Machine, str, dict[str, Any]], list[dict[str, Any]]]


@pytest.fixture
def machine(postgres_url: str) -> Iterator[Machine]:
    with registry.using(once.make_once()):
        yield factories.make_machine(scopes=[WRITE])


@pytest.fixture
def together(process_environment: dict[str, str], tmp_path: Path) -> Together:
    """Send 52 equal calls from 4 processes at once; their answers."""

    def run(machine: Machine, tool: str, body: dict[str, Any]) -> list[dict[str, Any]]:
        return call_together(machine, tool, body, environment=process_environment, folder=tmp_path)

    return run


def test_52_twins_run_once(machine: Machine, together: Together) -> None:
    before = KeyFamily.objects.count()
    answers = together(machine, "once.count", {"idempotency_key": "k"})
    ran = [row for row in answers if row["status"] == 200 and not row["replayed"]]
    rest = [row for row in answers if row not in ran]
    assert KeyFamily.objects.count() == before + 1
    assert len(ran) == 1
    assert all(row["body"] == ran[0]["body"] for row in rest if row["status"] == 200)
    assert {code_of(row) for row in rest if row["status"] != 200} <= {"idempotency_in_progress"}
    assert all(row["retry_after"] for row in rest if row["status"] != 200)


def test_52_redeems_of_one_code_run_once(machine: Machine, together: Together) -> None:
    before = KeyFamily.objects.count()
    code = held.hold(machine, "once.count", canonical.digest("once.count", {}), fingerprint="always the same")
    answers = together(machine, "once.count", {"confirm_token": code})
    assert [row["status"] for row in answers].count(200) == 1
    assert {json.loads(row["body"])["reason"] for row in answers if row["status"] != 200} == {"used"}
    assert KeyFamily.objects.count() == before + 1


def test_twins_of_a_call_that_is_held_are_told_to_wait(machine: Machine, tmp_path: Path) -> None:
    gate, body = Gate(tmp_path), {"idempotency_key": "k"}
    body |= {"gate": str(gate.path), "hold": "after"}
    first: list[Any] = []
    with gate.closed():
        thread = in_thread(lambda: first.append(machine.call("once.count", body)))
        gate.wait_for("after")
        twins = [Machine(text=machine.text).call("once.count", body) for _ in range(5)]
    thread.join(30)
    assert {twin.json()["code"] for twin in twins} == {"idempotency_in_progress"}
    assert all(twin.headers["Retry-After"] and twin.json()["retry"] == "same_key" for twin in twins)
    again = machine.call("once.count", body)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first[0].content, "true")


def test_a_change_between_prompt_and_code_is_shown_and_not_overwritten(machine: Machine) -> None:
    factories.set_setting("number", 0)
    prompt = machine.call("once.set", {"name": "number", "value": 90}).json()
    Setting.objects.filter(name="number").update(value=50)
    again = machine.call("once.set", {"name": "number", "value": 90, "confirm_token": prompt["confirm_token"]}).json()
    assert (again["status"], again["reason"]) == ("confirmation_required", "changed")
    assert again["preview"]["rows"][0]["before"] == 50
    assert Setting.objects.get(name="number").value == 50
    assert [row.state for row in Confirmation.objects.order_by("created_at")] == ["expired", "waiting"]


def test_a_change_between_the_fresh_preview_and_the_handler_is_never_overwritten(
    machine: Machine, tmp_path: Path
) -> None:
    factories.set_setting("number", 0)
    gate = Gate(tmp_path)
    body: dict[str, Any] = {"name": "number", "value": 90, "gate": str(gate.path), "hold": "before"}
    body["confirm_token"] = machine.call("once.set", body).json()["confirm_token"]
    answers: list[Any] = []
    with gate.closed():
        thread = in_thread(lambda: answers.append(machine.call("once.set", body)))
        gate.wait_for("before")
        Setting.objects.filter(name="number").update(value=50)
    thread.join(30)
    assert answers[0].json()["reason"] == "changed"
    assert Setting.objects.get(name="number").value == 50


def test_a_write_that_became_dangerous_at_the_run_is_prompted(machine: Machine, tmp_path: Path) -> None:
    factories.set_setting("number", 0)
    gate = Gate(tmp_path)
    body: dict[str, Any] = {"name": "number", "value": 30, "gate": str(gate.path), "hold": "before"}
    answers: list[Any] = []
    with gate.closed():
        thread = in_thread(lambda: answers.append(machine.call("once.set", body)))
        gate.wait_for("before")
        Setting.objects.filter(name="number").update(value=-30)
    thread.join(30)
    assert answers[0].json()["status"] == "confirmation_required"
    assert Setting.objects.get(name="number").value == -30


def code_of(row: dict[str, Any]) -> str:
    return str(json.loads(row["body"])["code"])


def in_thread(work: Callable[[], object]) -> threading.Thread:
    def run() -> None:
        try:
            work()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread
