"""Turns where they really run: threads of the one process, and Celery's workers. Killed there, the chat says so within a minute (C4)."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections

from apps.agent.models import Message, Turn
from apps.api.models import Setting
from tests.agent.chatting import Chatter, make_chatter
from tests.agent.endpoints import make_endpoint
from tests.agent.factories import CATALOGUE
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Finish, Say, Silence, Step
from tests.agent.wire.server import Wire
from tests.api.held import wait_until
from tests.services import Program, Tasks

NETWORKS = {"MODEL_NETWORKS": "127.0.0.0/8"}


@pytest.fixture
def chatter(database_url: str, settings: Any) -> Iterator[Chatter]:
    """What is sent here waits until a worker elsewhere finds it."""
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    Setting.objects.update_or_create(name="api_session_write_modules", defaults={"value": ["catalogue"]})
    yield make_chatter(permissions=CATALOGUE)
    connections.close_all()


def provider(*answers: list[Step]) -> Wire:
    wire = OpenAI(*answers)
    make_endpoint(base_url=wire.url)
    return wire


def unsent(turn: Any) -> None:
    """As if the message to the worker was lost: the sweep sends it again."""
    Turn.objects.filter(pk=turn).update(sent_at=None)


def is_over(turn: Any, state: str) -> Callable[[], bool]:
    return lambda: Turn.objects.get(pk=turn).state == state


def has_draft() -> bool:
    return Message.objects.filter(live=True, content="Half of it").exists()


@pytest.mark.sqlite
def test_the_one_process_answers_in_its_threads_and_goes_on_after_a_kill(
    chatter: Chatter, start_program: Callable[..., Program]
) -> None:
    with provider([Say("Half of it"), Silence()], [Say("Here I am."), Finish()]) as wire:
        turn = chatter.send("Go")
        unsent(turn)
        program = start_program("uvicorn", REDIS_URL="", **NETWORKS)
        wait_until(has_draft, seconds=60)
        killed_at = time.monotonic()
        program.kill()
        program.start()
        wait_until(is_over(turn, "interrupted"), seconds=60)
        assert time.monotonic() - killed_at < 60
        assert chatter.told() == [("user", "Go"), ("assistant", "Half of it"), ("notice", "interrupted")]
        again = chatter.send("And now?")
        unsent(again)
        wait_until(is_over(again, "done"), seconds=60)
    assert (wire.refusals, chatter.told()[-1]) == ([], ("assistant", "Here I am."))


@pytest.mark.sqlite
def test_the_one_process_says_interrupted_before_it_ends_in_order(
    chatter: Chatter, start_program: Callable[..., Program]
) -> None:
    with provider([Say("Half of it"), Silence()]):
        turn = chatter.send("Go")
        unsent(turn)
        program = start_program("uvicorn", REDIS_URL="", **NETWORKS)
        wait_until(has_draft, seconds=60)
        asked_at = time.monotonic()
        program.stop()
        assert time.monotonic() - asked_at < 10
        assert is_over(turn, "interrupted")()


def test_a_worker_of_celery_answers_and_one_that_is_killed_is_noticed_within_a_minute(
    chatter: Chatter, start_tasks: Callable[..., Tasks], redis_url: str, postgres_url: str
) -> None:
    environment = {"CELERY_BROKER_URL": redis_url, **NETWORKS}
    with provider([Say("Half of it"), Silence()], [Say("Here I am."), Finish()]):
        turn = chatter.send("Go")
        unsent(turn)
        worker = start_tasks("worker", **environment)
        wait_until(has_draft, seconds=90)
        killed_at = time.monotonic()
        worker.kill()
        start_tasks("worker", **environment)
        start_tasks("beat", **environment)
        wait_until(is_over(turn, "interrupted"), seconds=60)
        assert time.monotonic() - killed_at < 60
        again = chatter.send("And now?")
        unsent(again)
        wait_until(is_over(again, "done"), seconds=60)
    assert chatter.told()[-1] == ("assistant", "Here I am.")
