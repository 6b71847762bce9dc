"""Workers that die or sleep at each step of a turn: the chat says interrupted, keeps what there is and goes on (TU-1, TU-5)."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db.models.functions import Now

from apps.agent.models import Card, Message, Turn
from apps.api import registry
from apps.api.models import Confirmation
from tests.agent import scripted
from tests.agent.chatting import Chatter, make_chatter, run, sweep
from tests.agent.desk import make_desk
from tests.agent.well_formed import faults
from tests.api import factories
from tests.api.held import wait_until, waiting_for_a_lock
from tests.api.once import Gate
from tests.api.probe import CHANGE

pytestmark = pytest.mark.alone

LEASE = 4

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def chatter(postgres_url: str, settings: Any) -> Iterator[Chatter]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    factories.set_setting("api_session_write_modules", ["desk"])
    with registry.using(make_desk()):
        yield make_chatter(permissions=[CHANGE])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


@pytest.fixture
def start(process_environment: dict[str, str]) -> Iterator[Start]:
    """Start a worker that is delivered these turns."""
    started: list[subprocess.Popen[str]] = []

    def run_process(stage: "Stage", *uuids: UUID, **environment: str) -> "subprocess.Popen[str]":
        wanted = json.dumps({"uuids": [str(uuid) for uuid in uuids], "answers": stage.answers})
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.agent.turn_process", wanted],
            env={**process_environment, "LEASE": str(LEASE), **environment},
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield run_process
    for process in started:
        with suppress(ProcessLookupError):
            process.kill()
        process.wait()


class Stage:
    """A script that leads the turn to one of its points, and how a test knows that it stands there."""

    POINTS = ("silent", "mid_text", "tool", "preview", "second_round")

    def __init__(self, point: str, gate: Gate) -> None:
        self.point, self.gate = point, gate
        said, hang = ["say", "Half of it"], ["hang", f"{gate.path}.silent"]
        held = {"name": "lamp", "gate": str(gate.path), "hold": "preview"}
        self.answers: list[list[list[str]]] = {
            "silent": [[hang]],
            "mid_text": [[said, hang]],
            "tool": [[said, ["call", "desk_find", json.dumps({"gate": str(gate.path)})]]],
            "preview": [[said, ["call", "desk_put", json.dumps(held)]]],
            "second_round": [[said, ["call", "desk_put", json.dumps({"name": "lamp"})]], [hang]],
        }[point]

    def wait(self) -> None:
        mark = {"tool": "find", "preview": "preview"}.get(self.point, "silent")
        self.gate.wait_for(mark, seconds=90)
        if self.point == "mid_text":
            wait_until(lambda: Message.objects.filter(live=True, content="Half of it").exists())

    @property
    def left(self) -> list[tuple[str, str]]:
        """What the chat holds of the turn at that point."""
        said = [] if self.point == "silent" else [("assistant", "Half of it")]
        return [*said, *([("tool", "confirmation_required")] if self.point == "second_round" else [])]


def over(turn: UUID) -> None:
    """As after the lease's time: nobody renews it in the meantime."""
    Turn.objects.filter(pk=turn).update(lease_until=Now() - timedelta(milliseconds=1))


@pytest.mark.parametrize("point", Stage.POINTS)
def test_a_killed_workers_turn_is_interrupted_with_its_text_kept_and_the_chat_goes_on(
    chatter: Chatter, start: Start, gate: Gate, point: str
) -> None:
    stage = Stage(point, gate)
    with gate.closed():
        turn = chatter.send("Go")
        process = start(stage, turn)
        stage.wait()
        process.send_signal(signal.SIGKILL)
        process.wait()
    wait_until(lambda: sweep().turns_ended == 1, seconds=LEASE + 10)
    assert (chatter.last().state, chatter.last().code) == ("interrupted", "interrupted")
    assert chatter.told() == [("user", "Go"), *stage.left, ("notice", "interrupted")]
    assert not Message.objects.filter(live=True).exists()
    assert run(turn).state == "interrupted"
    with scripted.playing([scripted.Text(text="Here I am.")]) as script:
        assert chatter.ask("And now?").state == "done"
    assert faults(script.asks[0].history) == []


@pytest.mark.parametrize("point", Stage.POINTS)
def test_a_worker_that_slept_past_its_lease_writes_nothing(
    chatter: Chatter, start: Start, gate: Gate, point: str
) -> None:
    stage = Stage(point, gate)
    turn = chatter.send("Go")
    with gate.closed():
        process = start(stage, turn)
        stage.wait()
        process.send_signal(signal.SIGSTOP)
        wait_until(lambda: sweep().turns_ended == 1, seconds=LEASE + 10)
    with scripted.playing([scripted.Text(text="Here I am.")]):
        chatter.ask("And now?")
    before = (chatter.told(), list(Turn.objects.order_by("created_at").values("state", "code", "attempt")))
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 0
    assert (chatter.told(), list(Turn.objects.order_by("created_at").values("state", "code", "attempt"))) == before
    assert Card.objects.count() == (1 if point == "second_round" else 0)
    assert not Message.objects.filter(live=True).exists()


def test_a_worker_that_slept_past_its_lease_before_any_sweep_writes_nothing_either(
    chatter: Chatter, start: Start, gate: Gate
) -> None:
    stage = Stage("tool", gate)
    turn = chatter.send("Go")
    with gate.closed():
        process = start(stage, turn)
        stage.wait()
        process.send_signal(signal.SIGSTOP)
        over(turn)
    process.send_signal(signal.SIGCONT)
    assert process.wait(timeout=60) == 0
    assert chatter.told() == [("user", "Go"), *stage.left]
    assert sweep().turns_ended == 1


def test_a_worker_paused_inside_its_transaction_holds_up_the_chat_for_a_moment_only(
    chatter: Chatter, start: Start, gate: Gate, postgres_url: str
) -> None:
    stage = Stage("tool", gate)
    with psycopg.connect(postgres_url) as blocker:
        turn = chatter.send("Go")
        with gate.closed():
            process = start(stage, turn, IDLE="1")
            stage.wait()
            # It takes the chat's row and waits for the turn's: there it is paused, and gets what it waited for.
            blocker.execute("SELECT 1 FROM agent_turn WHERE uuid = %s FOR UPDATE", [turn])
        wait_until(lambda: waiting_for_a_lock() >= 1)
        process.send_signal(signal.SIGSTOP)
        blocker.rollback()
        over(turn)
        wait_until(lambda: sweep().turns_ended == 1, seconds=20)
        before = chatter.told()
        process.send_signal(signal.SIGCONT)
        process.wait(timeout=60)
    assert chatter.told() == before == [("user", "Go"), *stage.left, ("notice", "interrupted")]


def test_a_person_need_not_wait_for_the_sweep(chatter: Chatter) -> None:
    turn = chatter.send("Go")
    Turn.objects.filter(pk=turn).update(state="running", attempt=1, lease_until=Now() - timedelta(seconds=1))
    with scripted.playing([scripted.Text(text="Here I am.")]):
        chatter.ask("And now?")
    assert chatter.told() == [
        ("user", "Go"),
        ("notice", "interrupted"),
        ("user", "And now?"),
        ("assistant", "Here I am."),
    ]


def test_a_held_write_of_a_killed_worker_never_runs_without_its_card(
    chatter: Chatter, start: Start, gate: Gate
) -> None:
    stage = Stage("preview", gate)
    with gate.closed():
        turn = chatter.send("Go")
        process = start(stage, turn)
        stage.wait()
        process.send_signal(signal.SIGKILL)
        process.wait()
    over(turn)
    sweep()
    assert (Card.objects.count(), Confirmation.objects.filter(state="used").count()) == (0, 0)
