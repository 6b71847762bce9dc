"""What a client gets of a message, a turn and a held write: built from what it may have, and nothing else (CH-4)."""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

import pytest
from django.utils import timezone

from apps.agent import shapes
from apps.agent.models import Card, Message, Turn
from apps.api import strict_json
from tests.agent.factories import make_card, make_chat, make_message, make_person, make_tool_message, make_turn

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

CANARY = "CANARY-1"


def as_json(shape: Any) -> Any:
    return json.loads(strict_json.dumps(shape))


def test_a_message_has_the_members_of_the_specification_and_no_other() -> None:
    message = make_message(make_chat(make_person().user), "Hello.")
    assert as_json(shapes.message(message)) == {
        "uuid": str(message.pk),
        "number": 1,
        "version": 1,
        "role": "user",
        "content": "Hello.",
        "live": False,
        "created_at": message.created_at.isoformat(),
        "tool_calls": [],
        "tool_result": None,
        "tool_summary": None,
    }


@pytest.mark.parametrize("role", Message.Role.values)
def test_of_every_role_neither_result_nor_arguments_come_out_wherever_they_were_stored(role: str) -> None:
    stored = {
        "tool_calls": [{"id": "1", "name": "catalogue_list_products", "arguments": CANARY, "extra": CANARY}],
        "tool_result": {"rows": [CANARY]},
        "tool_summary": {
            "name": "catalogue.list_products",
            "outcome": "ok",
            "count": 2,
            "truncated": True,
            "more": CANARY,
        },
        "tool_call_id": CANARY,
        "code": "limit_rounds",
    }
    message = make_message(make_chat(make_person().user), "" if role == "tool" else "Text.", role=role, **stored)
    assert CANARY not in str(as_json(shapes.message(message)))
    assert shapes.message(message)["tool_result"] is None


def test_the_calls_of_an_assistants_message_keep_id_and_name() -> None:
    calls = [{"id": f"{n}", "name": "catalogue_list_products", "arguments": "{}"} for n in (1, 2)]
    message = make_message(make_chat(make_person().user), "Looking.", role="assistant", tool_calls=calls)
    assert shapes.message(message)["tool_calls"] == [{"id": call["id"], "name": call["name"]} for call in calls]


def test_a_tools_message_has_its_summary_and_never_a_text() -> None:
    chat = make_chat(make_person().user)
    message = make_message(
        chat,
        CANARY,
        role="tool",
        tool_result=[CANARY],
        tool_summary=shapes.tool_summary("a.b", "ok", [], truncated=True),
    )
    shape = shapes.message(message)
    assert shape["content"] == ""
    assert shape["tool_summary"] == {"name": "a.b", "outcome": "ok", "count": None, "truncated": True}


@pytest.mark.parametrize(
    "stored", [None, {}, [], "x", {"name": {"x": CANARY}, "outcome": [CANARY], "count": CANARY, "truncated": CANARY}]
)
def test_a_summary_that_is_odd_says_nothing(stored: Any) -> None:
    message = make_message(make_chat(make_person().user), "", role="tool", tool_summary=stored)
    nothing = {"name": None, "outcome": None, "count": None, "truncated": False}
    assert shapes.message(message)["tool_summary"] == nothing


@pytest.mark.parametrize(
    ("result", "count"),
    [
        ({"products": [1, 2, 3]}, 3),
        ({"products": []}, 0),
        ({"products": [1, 2], "total": 40}, 2),
        ({"a": [1], "b": [2, 3]}, None),
        ({"a": [1], "b": [2, 3], "total": 7}, 7),
        ({"count": 4}, 4),
        ({"total": 5}, 5),
        ({"count": 4, "total": 5}, 4),
        ({"count": "4"}, None),
        ({"count": True}, None),
        ({"count": -1, "total": 5}, 5),
        ({"product": {"rows": [1, 2]}}, None),
        ({}, None),
        ([1, 2], None),
        ("text", None),
        (None, None),
    ],
)
def test_a_summary_counts_what_was_found_where_the_result_says_it(result: Any, count: int | None) -> None:
    summary = shapes.tool_summary("catalogue.list_products", "ok", result, truncated=False)
    assert summary == {"name": "catalogue.list_products", "outcome": "ok", "count": count, "truncated": False}


def test_a_turn_has_its_state_its_reason_and_its_times() -> None:
    person = make_person()
    queued = make_turn(make_chat(person.user), person.session)
    shape = as_json(shapes.turn(queued))
    assert shape == {"uuid": str(queued.pk), "state": "queued", "code": None, "started_at": None, "ended_at": None}
    failed = make_turn(make_chat(person.user), person.session, state=Turn.State.FAILED, code="no_worker")
    assert (shapes.turn(failed)["state"], shapes.turn(failed)["code"]) == ("failed", "no_worker")


def make_waiting(**fields: Any) -> Card:
    return make_card(make_tool_message(make_chat(make_person().user), result={}), **fields)


def test_the_card_of_a_held_write_shows_its_arguments_and_preview_to_its_person() -> None:
    card, now = make_waiting(), timezone.now()
    shape = as_json(shapes.confirmation(card, title="Adjust stock", state="waiting", now=now))
    assert set(shape) == {
        "uuid", "tool", "title", "arguments", "preview", "state", "expires_at", "expires_in_seconds",
    }  # fmt: skip
    assert (shape["arguments"], shape["preview"], shape["title"]) == (card.arguments, card.preview, "Adjust stock")
    assert 890 < shape["expires_in_seconds"] <= 900


def test_a_card_that_is_decided_or_past_its_time_has_no_seconds_left() -> None:
    card = make_waiting()
    used = shapes.confirmation(card, title="x", state="used", now=timezone.now())
    late = shapes.confirmation(card, title="x", state="waiting", now=timezone.now() + timedelta(hours=1))
    assert (used["expires_in_seconds"], late["expires_in_seconds"]) == (0, 0)


@dataclass
class Later:
    """A row with a field that nobody has opened to clients."""

    row: Message
    secret_of_tomorrow: str = CANARY

    def __getattr__(self, name: str) -> Any:
        return getattr(self.row, name)


def test_a_field_that_is_added_to_the_row_stays_inside() -> None:
    row = make_message(make_chat(make_person().user))
    assert CANARY not in str(shapes.message(cast(Message, Later(row))))
