"""The official Python clients watch a call over a real socket: its progress, and the task that waits for an approver (MC-1, MC-4)."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from apps.api import deciding, registry, runs
from apps.api.deciding import Decision
from apps.api.models import Approval, KeyFamily
from tests.api import factories
from tests.api.factories import Machine
from tests.api.mcp import live
from tests.api.mcp.walking import tools as walking
from tests.api.probe import WRITE
from tests.api.test_approval_races import make_approver
from tests.services import Program

STEPS: dict[str, Any] = {"first": [{"done": 1, "total": 2, "message": "half"}], "then": [{"done": 2, "total": 2}]}


@pytest.fixture(params=["uvicorn", "granian"])
def program(request: pytest.FixtureRequest, postgres_url: str, start_program: Callable[..., Program]) -> Program:
    return start_program(request.param, DJANGO_SETTINGS_MODULE="tests.api.mcp.settings")


@contextmanager
def watching(
    program: Program, machine: Machine, how: str, given: dict[str, Any]
) -> Iterator[Callable[[], dict[str, Any]]]:
    """The client's next line, while it is there."""
    python = str(live.python("1" if how == "handshake" else "2"))
    script = str(Path(__file__).with_name("official_watching.py"))
    command = [python, script, f"{program.url}/mcp", str(machine.text), how, json.dumps(given)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def line() -> dict[str, Any]:
        assert process.stdout is not None and process.stderr is not None  # noqa: PT018 - they are pipes
        said = process.stdout.readline()
        assert said, process.stderr.read()[-3_000:]
        found: dict[str, Any] = json.loads(said)
        return found

    try:
        yield line
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


@pytest.mark.parametrize("how", ["handshake", "2026-07-28"])
def test_official_clients_hear_how_far_a_call_is(program: Program, how: str) -> None:
    machine = factories.make_machine(scopes=[WRITE])
    with watching(program, machine, how, STEPS) as line:
        found = line()
    assert found["steps"] == [[1, 2, "half"], [2, 2, None]]
    assert found["result"]["isError"] is False


def test_the_official_client_follows_a_task_to_its_result(program: Program, settings: Any) -> None:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    machine, before = factories.make_machine(scopes=[WRITE], requires_approval=True), KeyFamily.objects.count()
    with registry.using(walking.module), watching(program, machine, "2026-07-28", STEPS) as line:
        uuid = UUID(line()["task"]["taskId"])
        deciding.decide(make_approver().ref, uuid, Decision(approve=True, version=1), impersonated=False)
        runs.run(uuid)
        found = line()
    assert found["result"]["content"][0]["text"].encode() == bytes(Approval.objects.get().body or b"")
    assert found["result"]["isError"] is False
    assert KeyFamily.objects.count() == before + 1


def test_the_official_client_reads_the_refusal_of_a_task(program: Program) -> None:
    machine = factories.make_machine(scopes=[WRITE], requires_approval=True)
    with registry.using(walking.module), watching(program, machine, "2026-07-28", STEPS) as line:
        uuid = UUID(line()["task"]["taskId"])
        decision = Decision(approve=False, version=1, note="Not on a Friday.")
        deciding.decide(make_approver().ref, uuid, decision, impersonated=False)
        found = line()
    assert found["result"]["isError"] is True
    assert json.loads(found["result"]["content"][0]["text"])["reason"] == "approval_rejected"
