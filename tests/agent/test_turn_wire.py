"""Whole turns against strict servers of both wire formats, over real sockets: answers, calls, faults, and a stop that hangs up at once."""

import json
import threading
import time
from collections.abc import Iterator
from ipaddress import ip_network
from typing import Any
from uuid import UUID

import pytest
from django.db import connection

from apps.agent.models import ModelCall
from apps.api import registry
from tests.agent.chatting import Chatter, make_chatter, run, run_queued
from tests.agent.desk import SECRET_RESULT, make_desk, puts
from tests.agent.endpoints import make_endpoint
from tests.agent.wire.anthropic import Anthropic
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Call, Cut, Finish, Refuse, Say, Silence, Step
from tests.agent.wire.server import Wire
from tests.api import factories
from tests.api.probe import CHANGE

pytestmark = pytest.mark.sqlite

BOTH = pytest.mark.parametrize("kind", [OpenAI, Anthropic])


@pytest.fixture
def chatter(transactional_db: None, settings: Any) -> Iterator[Chatter]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    settings.MODEL_NETWORKS = [ip_network("127.0.0.0/8")]
    factories.set_setting("api_session_write_modules", ["desk"])
    with registry.using(make_desk()):
        yield make_chatter(permissions=[CHANGE])


def connect(kind: type[Wire], *answers: list[Step]) -> Wire:
    """A provider that plays these answers, and the default endpoint that leads to it."""
    wire = kind(*answers)
    make_endpoint(provider="anthropic" if kind is Anthropic else "openai", base_url=wire.url)
    return wire


def call(tool: str, *fragments: str) -> Call:
    return Call("call_1", tool, fragments)


@BOTH
def test_a_turn_with_a_read_and_a_held_write_and_its_follow_up(chatter: Chatter, kind: type[Wire]) -> None:
    wire = connect(
        kind,
        [Say("Let me "), Say("see."), call("desk_find", '{"text": ', '"pen"}'), Finish()],
        [call("desk_put", '{"name": "lamp"}'), Finish()],
        [Say("Please confirm."), Finish()],
        [Say("It is there."), Finish()],
    )
    with wire:
        assert chatter.ask("Put the lamp").state == "done"
        (card,) = chatter.cards()
        before = puts()
        chatter.confirm(card)
        (turn,) = run_queued()
    assert (turn.state, puts(before), wire.refusals) == ("done", 1, [])
    assert [text for role, text in chatter.told() if role == "assistant"] == [
        "Let me see.",
        "",
        "Please confirm.",
        "It is there.",
    ]
    assert SECRET_RESULT in json.dumps(wire.requests[1].body)
    assert list(ModelCall.objects.order_by("started_at").values_list("round", "input_tokens", "code")) == [
        (1, 11, ""),
        (2, 11, ""),
        (3, 11, ""),
        (4, 11, ""),
    ]


@BOTH
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ([Refuse(429, {"error": {"message": "slow down"}}, {"Retry-After": "7"})], "provider_rate_limited"),
        ([Refuse(401, {"error": {"message": "bad key"}})], "provider_unauthorized"),
        ([Say("Half of it"), Cut()], "provider_cut"),
    ],
)
def test_a_fault_of_the_provider_ends_with_its_reason_and_trying_again_works(
    chatter: Chatter, kind: type[Wire], answer: list[Step], code: str
) -> None:
    wire = connect(kind, answer, [Say("Whole."), Finish()])
    with wire:
        turn = chatter.ask("Go")
        assert (turn.state, turn.code, chatter.told()[-1]) == ("failed", code, ("notice", code))
        assert run(chatter.retry()).state == "done"
    assert (wire.refusals, chatter.told()[-1]) == ([], ("assistant", "Whole."))


@BOTH
def test_arguments_that_are_no_json_get_a_result_and_the_turn_goes_on(chatter: Chatter, kind: type[Wire]) -> None:
    wire = connect(kind, [call("desk_find", '{"text": '), Finish()], [Say("I see."), Finish()])
    with wire:
        assert chatter.ask().state == "done"
    assert (wire.refusals, chatter.told()[2]) == ([], ("tool", "invalid_arguments"))


@BOTH
@pytest.mark.parametrize(
    "first", [[Silence()], [Say("Half of it"), Silence()]], ids=["before the first token", "in it"]
)
def test_a_stop_closes_the_connection_within_a_second_while_the_provider_says_nothing(
    chatter: Chatter, kind: type[Wire], first: list[Step]
) -> None:
    wire = connect(kind, first, [Say("Here I am."), Finish()])
    with wire:
        turn = chatter.send("Go")
        worker = threading.Thread(target=work, args=[turn])
        worker.start()
        assert wire.silent.wait(60)
        elsewhere = Chatter(person=chatter.person.elsewhere(), chat=chatter.chat)
        asked_at = time.monotonic()
        assert elsewhere.stop()["state"] == "stopped"
        assert wire.client_gone.wait(10)
        assert wire.gone_at - asked_at < 1.0
        worker.join(10)
        assert chatter.told()[-1] == ("notice", "stopped")
        assert chatter.ask("And now?").state == "done"
    assert (wire.refusals, chatter.told()[-1]) == ([], ("assistant", "Here I am."))
    assert ModelCall.objects.get(code="stopped").is_estimate


def work(turn: UUID) -> None:
    try:
        run(turn)
    finally:
        connection.close()


@BOTH
def test_a_provider_that_hangs_is_left_at_the_turns_time(chatter: Chatter, kind: type[Wire]) -> None:
    factories.set_setting("agent_turn_seconds", 5)
    wire = connect(kind, [Say("Wait"), Silence()])
    with wire:
        turn = chatter.ask()
        assert wire.client_gone.wait(10)
    assert (turn.state, turn.code) == ("failed", "limit_time")
    assert chatter.told()[1:] == [("assistant", "Wait"), ("notice", "limit_time")]
