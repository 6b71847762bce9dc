"""A module that the demo model has never seen, driven through whole turns by words and by commands (TU-8)."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.agent.models import Card, Turn
from apps.api import registry
from tests.agent import rooms
from tests.agent.chatting import Chatter, make_chatter, run
from tests.api import factories
from tests.api.probe import CHANGE, VIEW

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def chatter(transactional_db: None, settings: Any) -> Iterator[Chatter]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    factories.set_setting("api_session_write_modules", ["rooms"])
    rooms.made.clear()
    with registry.using(rooms.make_rooms()):
        yield make_chatter(permissions=[VIEW, CHANGE])


def told(chatter: Chatter, text: str) -> tuple[list[tuple[str, str]], str]:
    """The tools that were called with their outcomes, and what the assistant said in the end."""
    before = len(chatter.messages())
    assert chatter.ask(text).state == Turn.State.DONE
    new = chatter.messages()[before:]
    calls = [(row.tool_summary["name"], row.tool_summary["outcome"]) for row in new if row.tool_summary]
    return calls, new[-1].content


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("which rooms have a screen?", {"R101", "R201"}),
        ("show the rooms on the first floor", {"R201"}),
        ("list all meeting rooms", {"R101", "R102", "R201"}),
        ("/rooms.list_rooms floor=ground has_screen=no", {"R102"}),
        ("/tool rooms_list_rooms min_seats=8", {"R102", "R201"}),
    ],
)
def test_what_is_asked_by_words_or_by_a_command_is_looked_up(chatter: Chatter, text: str, found: set[str]) -> None:
    calls, said = told(chatter, text)
    assert calls == [("rooms.list_rooms", "ok")]
    assert {room for room in rooms.ROOMS if room in said} == found


def test_one_thing_is_found_by_its_number(chatter: Chatter) -> None:
    calls, said = told(chatter, "how many seats has room R102?")
    assert calls == [("rooms.get_room", "ok")]
    assert "12" in said


@pytest.mark.parametrize(
    "text",
    [
        "set the rate of R101 to 25",
        "raise the rate of R101 by 25 %",
        '/rooms.set_rates rates=[{"room":"R101","rate":25}]',
    ],
)
def test_a_change_waits_on_a_card_and_runs_once_when_it_is_confirmed(chatter: Chatter, text: str) -> None:
    calls, _ = told(chatter, text)
    assert calls[-1] == ("rooms.set_rates", "confirmation_required")
    assert rooms.made == []
    (card,) = chatter.cards()
    assert card.preview["rows"][0]["after"] == 25
    chatter.confirm(card)
    run(chatter.last().pk)
    assert rooms.made == [("R101", 25.0)]
    card.refresh_from_db()
    assert (card.state, chatter.last().state) == (Card.State.USED, Turn.State.DONE)


def test_what_it_can_do_is_said_when_it_does_not_understand(chatter: Chatter) -> None:
    calls, said = told(chatter, "fhqwhgads")
    assert calls == []
    assert "rooms" in said.lower()


def test_a_wrong_command_names_what_is_wrong_and_calls_nothing(chatter: Chatter) -> None:
    calls, said = told(chatter, "/rooms.list_rooms floor=cellar")
    assert calls == [] or calls[0][1] != "ok"
    assert "floor" in said
