"""Two at every move of a turn and of a card at the same instant, with connections of their own (TU-1, TU-3, TU-5)."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db.models.functions import Now
from django.utils import timezone

from apps.agent import loop, turn_state
from apps.agent.models import Card, Message, Turn
from apps.api import registry
from apps.api.models import Confirmation
from apps.api.problems import Problem
from tests.agent import scripted
from tests.agent.chatting import Chatter, make_chatter, run_queued, sent, sweep
from tests.agent.desk import make_desk, puts
from tests.agent.factories import make_chat
from tests.agent.scripted import Text, ToolCall
from tests.api import factories
from tests.api.once import Gate
from tests.api.probe import CHANGE
from tests.api.together import at_once

pytestmark = pytest.mark.alone

MANY = 8


@pytest.fixture
def chatter(postgres_url: str, settings: Any) -> Iterator[Chatter]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    sent.clear()
    factories.set_setting("api_session_write_modules", ["desk"])
    with registry.using(make_desk()):
        yield make_chatter(permissions=[CHANGE])


def ending(call: Callable[[], Any]) -> Callable[[], str]:
    """`ran`, or the code and reason that it was refused with."""

    def called() -> str:
        try:
            call()
        except Problem as problem:
            return f"{problem.code} {problem.context.get('reason', '')}".strip()
        return "ran"

    return called


def proposed(chatter: Chatter, *names: str) -> list[Card]:
    calls = [ToolCall(id="1", name="desk_put", arguments=f'{{"name": "{name}"}}') for name in names]
    with scripted.playing([*calls], [Text(text="Please confirm.")]):
        chatter.ask("Put it there")
    return chatter.cards()


def test_many_texts_at_once_are_one_text_and_one_turn(chatter: Chatter) -> None:
    found = at_once(*[ending(lambda number=number: chatter.send(str(number))) for number in range(MANY)])  # type: ignore[misc]
    assert Counter(found) == {"ran": 1, "turn_running": MANY - 1}
    assert (len(chatter.messages()), Turn.objects.count(), len(sent)) == (1, 1, 1)


def test_one_text_sent_many_times_at_once_is_stored_once_and_answered_alike(chatter: Chatter) -> None:
    uuid = str(uuid4())
    found = at_once(*[lambda: chatter.send("Once", client_uuid=uuid)] * MANY)
    assert (len(set(found)), len(chatter.messages()), Turn.objects.count()) == (1, 1, 1)


def test_a_turn_that_is_delivered_many_times_at_once_runs_once(chatter: Chatter) -> None:
    turn = chatter.send()
    with scripted.playing([Text(text="Once.")]) as script:
        at_once(*[lambda: loop.run(turn)] * MANY)
    assert (len(script.asks), chatter.last().state, chatter.last().attempt) == (1, "done", 1)
    assert chatter.told() == [("user", "Hello."), ("assistant", "Once.")]


def test_turns_of_one_person_are_counted_exactly_when_they_begin_at_once(chatter: Chatter) -> None:
    others = [Chatter(person=chatter.person, chat=make_chat(chatter.person.user)) for _ in range(5)]
    waiting = [other.send() for other in others]
    found = at_once(*[lambda turn=turn: turn_state.claim(turn, at_once=2) for turn in waiting])
    assert sum(attempt is not None for attempt in found) == 2
    assert Counter(Turn.objects.values_list("state", "code")) == {
        ("running", ""): 2,
        ("failed", "limit_turns_at_once"): 3,
    }


def test_a_stop_and_a_claim_at_once_leave_a_stopped_turn(chatter: Chatter) -> None:
    for _ in range(8):
        turn = chatter.send()
        at_once(lambda it=turn: turn_state.claim(it, at_once=9), chatter.stop)  # type: ignore[misc]
        assert Turn.objects.get(pk=turn).state == "stopped"
    assert chatter.told().count(("notice", "stopped")) == 8


def test_a_stop_and_the_end_at_once_are_one_end(chatter: Chatter) -> None:
    for _ in range(8):
        attempt = turn_state.claim(chatter.send(), at_once=9)
        assert attempt is not None

        def finish(it: turn_state.Attempt = attempt) -> str:
            try:
                turn_state.finish(it, Turn.State.DONE)
            except turn_state.Lost:
                return "lost"
            return "done"

        found, _ = at_once(finish, chatter.stop)
        assert chatter.last().state == {"lost": "stopped", "done": "done"}[found]
    stopped = Turn.objects.filter(state="stopped").count()
    assert chatter.told().count(("notice", "stopped")) == stopped


def test_two_sweeps_and_a_send_interrupt_a_lost_turn_once(chatter: Chatter) -> None:
    for _ in range(5):
        turn = chatter.send()
        running = {"state": "running", "attempt": 1, "lease_until": Now() - timedelta(seconds=1)}
        Turn.objects.filter(pk=turn).update(**running)
        at_once(sweep, sweep, ending(chatter.send))
        assert Turn.objects.get(pk=turn).state == "interrupted"
        assert Message.objects.filter(turn=turn, code="interrupted").count() == 1
        chatter.stop()


def test_a_lost_lease_is_not_renewed_and_its_renewal_races_no_sweep(chatter: Chatter) -> None:
    attempt = turn_state.claim(chatter.send(), at_once=9)
    assert attempt is not None
    Turn.objects.update(lease_until=Now() - timedelta(milliseconds=1))
    at_once(*[lambda: turn_state.renew([attempt])] * 4, sweep)
    assert (chatter.last().state, turn_state.is_current(attempt)) == ("interrupted", False)


def test_two_sweeps_send_a_waiting_turn_again_once(chatter: Chatter) -> None:
    turn = chatter.send()
    sent.clear()
    Turn.objects.update(sent_at=timezone.now() - timedelta(seconds=31))
    assert sorted(found.turns_sent for found in at_once(sweep, sweep, sweep)) == [0, 0, 1]
    assert sent == [("run_turn", str(turn))]


def test_a_claim_and_the_end_for_want_of_a_worker_at_once_are_one_move(chatter: Chatter) -> None:
    for _ in range(6):
        turn = chatter.send()
        Turn.objects.filter(pk=turn).update(created_at=timezone.now() - timedelta(minutes=6))
        attempt, _ = at_once(lambda it=turn: turn_state.claim(it, at_once=9), sweep)  # type: ignore[misc]
        found = Turn.objects.get(pk=turn)
        assert (found.state, found.code) == (("failed", "no_worker") if attempt is None else ("running", ""))
        chatter.stop()


def test_a_deletion_and_a_send_at_once_leave_no_text_in_a_deleted_chat(chatter: Chatter) -> None:
    for _ in range(8):
        other = Chatter(person=chatter.person, chat=make_chat(chatter.person.user))
        found, _ = at_once(ending(other.send), other.delete)
        assert len(other.messages()) == (found == "ran")
        assert Turn.objects.filter(conversation=other.chat).count() == (found == "ran")


def test_many_confirmations_of_one_card_have_one_effect_one_note_and_one_follow_up(chatter: Chatter) -> None:
    (card,) = proposed(chatter, "lamp")
    before = puts()
    found = at_once(*[ending(lambda: chatter.confirm(card))] * MANY)
    assert Counter(found) == {"ran": 1, "confirm_token_invalid used": MANY - 1}
    assert (puts(before), chatter.told().count(("notice", "confirmed"))) == (1, 1)
    assert Turn.objects.filter(state="queued").count() == 1


def test_a_second_tab_and_the_sweep_leave_the_first_tabs_outcome_to_the_first_tab(
    chatter: Chatter, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    put = {"name": "lamp", "gate": str(gate.path), "hold": "committed"}
    with scripted.playing([ToolCall(id="1", name="desk_put", arguments=json.dumps(put))], [Text(text="Please.")]):
        chatter.ask("Put it there")
    (card,) = chatter.cards()
    before = puts()

    def second() -> tuple[str, int]:
        """While the write has run, and nobody has written it down yet."""
        with gate.closed():
            gate.wait_for("committed")
            return ending(lambda: chatter.confirm(card))(), sweep().cards_settled

    first, found = at_once(ending(lambda: chatter.confirm(card)), second)
    assert (first, found, puts(before)) == ("ran", ("conflict busy", 0), 1)
    assert [code for role, code in chatter.told() if role == "notice"] == ["confirmed"]


def test_a_yes_and_a_no_at_once_are_one_decision(chatter: Chatter) -> None:
    for number in range(5):
        *_, card = proposed(chatter, f"lamp{number}")
        before = puts()
        found = at_once(ending(lambda it=card: chatter.confirm(it)), ending(lambda it=card: chatter.reject(it)))  # type: ignore[misc]
        card.refresh_from_db()
        assert Counter(found) == {"ran": 1, f"confirm_token_invalid {card.state}": 1}
        assert puts(before) == (card.state == "used")
        assert Confirmation.objects.get(pk=card.pk).state == card.state
        with scripted.playing([Text(text="I see.")]):
            assert len(run_queued()) == 1


def test_two_cards_decided_at_once_start_one_follow_up(chatter: Chatter) -> None:
    for number in range(5):
        first, second = proposed(chatter, f"lamp{number}", f"chair{number}")[-2:]
        before = puts()
        at_once(lambda it=first: chatter.confirm(it), lambda it=second: chatter.confirm(it))  # type: ignore[misc]
        assert (puts(before), Turn.objects.filter(state="queued").count()) == (2, 1)
        with scripted.playing([Text(text="I see.")]):
            assert len(run_queued()) == 1


def test_a_confirmation_and_the_sweep_at_the_last_instant_agree(chatter: Chatter) -> None:
    for number in range(6):
        *_, card = proposed(chatter, f"lamp{number}")
        before, at = puts(), timezone.now() + timedelta(milliseconds=15)
        Confirmation.objects.filter(pk=card.pk).update(expires_at=at)
        Card.objects.filter(pk=card.pk).update(expires_at=at)
        at_once(ending(lambda it=card: chatter.confirm(it)), sweep, sweep)  # type: ignore[misc]
        sweep()
        card.refresh_from_db()
        assert card.state == Confirmation.objects.get(pk=card.pk).state
        assert puts(before) == (card.state == "used")
        with scripted.playing([Text(text="I see.")]):
            run_queued()


def test_a_decision_and_the_end_of_the_turn_at_once_tell_the_model_once(chatter: Chatter) -> None:
    for number in range(6):
        *_, card = proposed(chatter, f"lamp{number}")
        attempt = turn_state.claim(chatter.send("Something else"), at_once=9)
        assert attempt is not None
        at_once(
            lambda it=attempt: turn_state.finish(it, Turn.State.DONE),  # type: ignore[misc]
            lambda it=card: chatter.confirm(it),  # type: ignore[misc]
        )
        assert Turn.objects.filter(state="queued").count() == 1
        with scripted.playing([Text(text="I see.")]):
            assert len(run_queued()) == 1
