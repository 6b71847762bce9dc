"""Turns by the functions: an answer, the calls on the way, the cards, the limits, and every end with its reason (TU-1 to TU-6)."""

import json
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.agent import access, limits, loop, results, turn_state
from apps.agent import cards as cards_of_chats
from apps.agent.drafts import Draft
from apps.agent.models import AgentSetting, Card, Conversation, Message, ModelCall, Turn
from apps.agent.providers.protocol import Failure, Resulted, Said, Text, ToolCall, Usage
from apps.api import registry
from apps.api.models import Confirmation, Setting
from tests.accounts.factories import make_live_session
from tests.agent import scripted
from tests.agent.chatting import Chatter, make_chatter, refused, run, run_queued, sent, sweep
from tests.agent.desk import SECRET_RESULT, make_desk, puts
from tests.agent.factories import make_chat
from tests.agent.well_formed import faults
from tests.api import factories
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.probe import CHANGE
from tests.api.together import at_once

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def chatter(transactional_db: None, settings: Any) -> Iterator[Chatter]:
    """A person with the rights of the desk, where the agent may act; the test runs the turns."""
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    sent.clear()
    factories.set_setting("api_session_write_modules", ["desk"])
    with registry.using(make_desk()):
        yield make_chatter(permissions=[CHANGE])


def call(tool: str = "desk_find", /, **arguments: Any) -> ToolCall:
    return ToolCall(id="theirs", name=tool, arguments=json.dumps(arguments))


def put(name: str = "lamp", **more: Any) -> ToolCall:
    return call("desk_put", name=name, **more)


def text(words: str) -> Text:
    return Text(text=words)


# --- An answer --------------------------------------------------------------------------------------------------------


def test_a_text_is_stored_and_queued_in_one_step_and_sent_to_a_worker(chatter: Chatter) -> None:
    turn = chatter.send("How are you?")
    assert chatter.told() == [("user", "How are you?")]
    assert (chatter.last().pk, chatter.last().state, chatter.messages()[0].turn_id) == (turn, "queued", turn)
    assert sent == [("run_turn", str(turn))]


def test_a_turn_streams_its_answer_and_is_done(chatter: Chatter, heard: list[dict[str, Any]]) -> None:
    with scripted.playing([text("Hel"), text("lo."), Usage(input_tokens=10, output_tokens=5)]) as script:
        turn = chatter.ask("Hi")
    assert (turn.state, turn.code, turn.rounds, turn.tokens) == ("done", "", 1, 15)
    assert chatter.told() == [("user", "Hi"), ("assistant", "Hello.")]
    assert not Message.objects.filter(live=True).exists()
    assert script.asks[0].history == (Said(text="Hi"),)
    assert {offer.name for offer in script.asks[0].tools} == {"desk_find", "desk_mail", "desk_put"}
    assert [frame["type"] for frame in heard].count("agent_turn_changed") == 3
    assert script.closed == 1


def test_a_draft_is_there_while_the_answer_comes(chatter: Chatter) -> None:
    gate = scripted.Gate()
    with scripted.playing([text("Half"), gate, text(" and half")]):
        turn = chatter.send()

        def look() -> tuple[str, bool]:
            gate.wait()
            wait_until(lambda: Message.objects.filter(live=True, content="Half").exists())
            draft = Message.objects.get(live=True)
            gate.open()
            return draft.content, draft.live

        _, seen = at_once(lambda: run(turn), look)
    assert seen == ("Half", True)
    final = Message.objects.get(role="assistant")
    assert (final.content, final.live, final.version > 1) == ("Half and half", False, True)


def test_a_call_runs_with_the_persons_rights_and_its_result_goes_to_the_model_alone(chatter: Chatter) -> None:
    with scripted.playing([text("Let me see."), call(text="pen")], [text("Two pens.")]) as script:
        turn = chatter.ask("Any pens?")
    assert (turn.state, turn.rounds, turn.calls) == ("done", 2, 1)
    assert chatter.told() == [
        ("user", "Any pens?"),
        ("assistant", "Let me see."),
        ("tool", "ok"),
        ("assistant", "Two pens."),
    ]
    line = script.asks[1].history[-1]
    assert isinstance(line, Resulted)
    told = json.loads(line.text)
    assert told["data"]["found"] == [f"pen {SECRET_RESULT}"] * 2
    assert "instruction" in told["untrusted"]
    assert chatter.messages()[2].tool_summary == {"name": "desk.find", "outcome": "ok", "count": 2, "truncated": False}
    assert faults(script.asks[1].history) == []


def test_two_calls_of_one_answer_have_ids_of_our_own(chatter: Chatter) -> None:
    with scripted.playing([call(text="a"), call(text="b")], [text("Done.")]) as script:
        chatter.ask()
    asked = script.asks[1].history[1]
    assert [c.name for c in asked.calls] == ["desk_find"] * 2  # type: ignore[union-attr]
    assert len({c.id for c in asked.calls} - {"theirs"}) == 2  # type: ignore[union-attr]
    assert faults(script.asks[1].history) == []


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        (ToolCall(id="1", name="desk_find", arguments='{"text": '), "invalid_arguments"),
        (ToolCall(id="1", name="desk_find", arguments="[1]"), "invalid_arguments"),
        (ToolCall(id="1", name="desk_find", arguments='{"text": "a\x00b\ud800"}'), "ok"),
        (ToolCall(id="1", name="desk_find", arguments='{"text": "\\u0000"}'), "invalid_arguments"),
        (ToolCall(id="1", name="desk_find", arguments=""), "ok"),
        (ToolCall(id="", name="no such tool!", arguments="{}"), "unknown_tool"),
        (ToolCall(id="1", name="", arguments="{}"), "unknown_tool"),
        (ToolCall(id="1", name="system_whoami", arguments="{}"), "forbidden"),
        (ToolCall(id="1", name="desk_find", arguments='{"size": "large"}'), "validation_failed"),
        (ToolCall(id="1", name="desk_find", arguments='{"fail": "refuse"}'), "desk_closed"),
        (ToolCall(id="1", name="desk_find", arguments='{"fail": "break"}'), "internal_error"),
        (ToolCall(id="1", name="desk.find", arguments="{}"), "ok"),
        (ToolCall(id="1", name="desk_put", arguments='{"name": "a", "confirm_token": "x"}'), "validation_failed"),
    ],
)
def test_whatever_a_model_asks_for_it_gets_a_result_and_goes_on(
    chatter: Chatter, asked: ToolCall, outcome: str
) -> None:
    with scripted.playing([asked], [text("I see.")]) as script:
        turn = chatter.ask()
    assert (turn.state, chatter.told()[2]) == ("done", ("tool", outcome))
    assert faults(script.asks[1].history) == []


def test_a_second_text_in_mid_turn_is_refused_and_nothing_is_stored(chatter: Chatter) -> None:
    chatter.send("First")
    assert refused(lambda: chatter.send("Second"))[0] == "turn_running"
    assert chatter.told() == [("user", "First")]
    assert Turn.objects.count() == 1


def test_the_same_text_sent_twice_is_one_text_and_one_turn(chatter: Chatter) -> None:
    uuid = str(uuid4())
    first = chatter.send("Once", client_uuid=uuid)
    assert chatter.send("Once", client_uuid=uuid) == first
    assert (len(chatter.messages()), Turn.objects.count(), len(sent)) == (1, 1, 1)


def test_a_turn_that_is_delivered_twice_runs_once(chatter: Chatter) -> None:
    with scripted.playing([text("Once.")]) as script:
        turn = chatter.ask()
        run(turn.pk)
    assert (len(script.asks), len(chatter.messages())) == (1, 2)


# --- Cards ------------------------------------------------------------------------------------------------------------


def proposed(chatter: Chatter, *calls: ToolCall) -> list[Card]:
    with scripted.playing([*calls], [text("Please confirm.")]):
        assert chatter.ask("Put it there").state == "done"
    return chatter.cards()


def test_a_write_is_held_and_its_card_comes_from_the_stored_call(chatter: Chatter) -> None:
    with scripted.playing([text("I only refresh."), put("lamp", value=7)], [text("Please confirm.")]) as script:
        chatter.ask("Put the lamp")
    (card,) = chatter.cards()
    assert (card.state, card.tool, card.arguments) == ("waiting", "desk.put", {"name": "lamp", "value": 7})
    assert card.preview["summary"] == "Put lamp."
    assert json.loads(script.asks[1].history[-1].text)["outcome"] == "confirmation_required"
    assert puts() == 0


def test_a_confirmed_write_runs_once_and_one_follow_up_tells_the_model(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put("lamp", value=7))
    before = puts()
    decided = chatter.confirm(card)
    assert (decided.confirmation["state"], decided.code, puts(before)) == ("used", None, 1)
    assert chatter.told()[-1] == ("notice", "confirmed")
    with scripted.playing([text("It is there.")]) as script:
        (turn,) = run_queued()
    assert (turn.state, turn.follows_id, turn.rounds, turn.calls) == ("done", card.turn_id, 3, 1)
    last = script.asks[0].history[-1]
    assert isinstance(last, Said)
    assert "confirmed" in last.text
    assert SECRET_RESULT in last.text
    assert faults(script.asks[0].history) == []
    assert Card.objects.get().told_in == turn
    assert run_queued() == []


def test_a_second_confirmation_is_refused_as_used_and_has_no_effect(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    before = puts()
    chatter.confirm(card)
    assert refused(lambda: chatter.confirm(card)) == ("confirm_token_invalid", "used")
    assert refused(lambda: chatter.reject(card)) == ("confirm_token_invalid", "used")
    assert (puts(before), chatter.told().count(("notice", "confirmed")), Turn.objects.count()) == (1, 1, 2)


def test_a_rejected_write_never_runs(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    before = puts()
    assert chatter.reject(card).confirmation["state"] == "rejected"
    assert refused(lambda: chatter.confirm(card)) == ("confirm_token_invalid", "rejected")
    assert (puts(before), chatter.told()[-1], Turn.objects.filter(state="queued").count()) == (
        0,
        ("notice", "rejected"),
        1,
    )


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_cards_of_one_turn_are_independent_and_one_follow_up_comes_after_the_last(
    chatter: Chatter, order: tuple[int, int]
) -> None:
    cards = proposed(chatter, put("lamp"), put("chair"))
    before = puts()
    chatter.confirm(cards[order[0]])
    assert Turn.objects.count() == 1
    chatter.reject(cards[order[1]])
    assert (puts(before), Turn.objects.filter(state="queued").count()) == (1, 1)
    with scripted.playing([text("One of them.")]) as script:
        run_queued()
    assert "confirmed" in script.asks[0].history[-1].text
    assert "rejected" in script.asks[0].history[-1].text


def test_a_changed_value_replaces_the_card_and_the_new_one_can_be_confirmed(chatter: Chatter) -> None:
    factories.set_setting("lamp", 1)
    (card,) = proposed(chatter, put("lamp", value=7))
    factories.set_setting("lamp", 3)
    before, decided = puts(), chatter.confirm(card)
    new = decided.replaced_by
    assert new is not None
    assert (decided.confirmation["state"], new["state"], puts(before)) == ("expired", "waiting", 0)
    assert new["preview"]["rows"][0]["before"] == 3
    assert Turn.objects.count() == 1
    chatter.confirm(new["uuid"])
    assert (puts(before), Setting.objects.get(name="lamp").value) == (1, 7)
    with scripted.playing([text("Done.")]):
        assert len(run_queued()) == 1


def test_a_write_that_refuses_when_it_runs_says_so_once(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put(fail="refuse"))
    before, decided = puts(), chatter.confirm(card)
    assert (decided.code, decided.confirmation["state"], puts(before)) == ("desk_closed", "used", 0)
    assert chatter.told()[-1] == ("notice", "confirmed_failed")


def test_a_write_outside_that_breaks_is_not_said_to_have_failed(chatter: Chatter) -> None:
    (card,) = proposed(chatter, call("desk_mail", fail="break"))
    decided = chatter.confirm(card)
    assert (decided.code, decided.confirmation["state"]) == ("internal_error", "used")
    assert chatter.told()[-1] == ("notice", "confirmed_unknown")


def test_a_write_that_breaks_leaves_the_card_waiting(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put(fail="break"))
    assert refused(lambda: chatter.confirm(card))[0] == "internal_error"
    assert (Card.objects.get().state, chatter.told()[-1][0]) == ("waiting", "assistant")


def test_an_expired_card_says_so_by_itself_and_starts_no_turn(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    late(card)
    (shape,) = cards_of_chats.list_confirmations(chatter.person.ref, chatter.chat.pk, impersonated=False)
    assert (shape["state"], shape["expires_in_seconds"], Card.objects.get().state) == ("expired", 0, "waiting")
    assert sweep().cards_settled == 1
    assert sweep().cards_settled == 0
    assert (Card.objects.get().state, chatter.told()[-1]) == ("expired", ("notice", "expired"))
    assert Confirmation.objects.get().state == "expired"
    assert Turn.objects.count() == 1
    assert refused(lambda: chatter.confirm(card)) == ("confirm_token_invalid", "expired")


def test_a_confirmation_after_expiry_is_shown_in_place(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    late(card)
    before = puts()
    assert refused(lambda: chatter.confirm(card)) == ("confirm_token_invalid", "expired")
    assert (Card.objects.get().state, chatter.told()[-1], puts(before)) == ("expired", ("notice", "expired"), 0)


def test_a_confirmation_whose_worker_died_before_it_was_noted_is_made_true_by_the_sweep(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    before = puts()
    chatter.person.redeem(card.pk, card.tool, card.arguments)
    assert (puts(before), Card.objects.get().state) == (1, "waiting")
    assert sweep().cards_settled == 1
    assert (Card.objects.get().state, chatter.told()[-1]) == ("used", ("notice", "confirmed_unknown"))
    assert Turn.objects.filter(state="queued").count() == 1


def test_a_card_decided_while_the_model_answers_is_told_in_a_turn_after_it(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    gate = scripted.Gate()
    with scripted.playing([gate, text("Hello.")], [text("It is there.")]) as script:
        turn = chatter.send("Something else")

        def decide() -> None:
            gate.wait()
            chatter.confirm(card)
            assert Turn.objects.filter(state="queued").count() == 0
            gate.open()

        at_once(lambda: run(turn), decide)
        assert [found.state for found in run_queued()] == ["done"]
    said = [line.text for line in script.asks[1].history if isinstance(line, Said)]
    assert "confirmed it, and it ran" in said[-2]
    assert faults(script.asks[1].history) == []


def test_a_card_decided_before_the_next_round_is_told_there_and_starts_no_turn(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    gate = scripted.Gate()
    with scripted.playing([gate, call(text="pen")], [text("Both.")]) as script:
        turn = chatter.send("Something else")

        def decide() -> None:
            gate.wait()
            chatter.confirm(card)
            gate.open()

        at_once(lambda: run(turn), decide)
        assert run_queued() == []
    assert faults(script.asks[1].history) == []


def test_another_persons_card_and_chat_are_not_found(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    stranger = make_chatter(permissions=[CHANGE])
    own = Chatter(person=stranger.person, chat=chatter.chat)
    assert refused(lambda: own.confirm(card)) == ("not_found", None)
    assert refused(lambda: stranger.confirm(card)) == ("not_found", None)
    assert refused(lambda: stranger.reject(card)) == ("not_found", None)
    assert refused(own.stop) == ("not_found", None)
    assert refused(own.retry) == ("not_found", None)
    assert refused(own.send) == ("not_found", None)
    assert Card.objects.get().state == "waiting"


def test_a_card_is_decided_from_another_session_of_its_person(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    elsewhere = Chatter(person=chatter.person.elsewhere(), chat=chatter.chat)
    elsewhere.confirm(card)
    assert chatter.last().session_uuid == elsewhere.person.session.pk


def late(card: Card) -> None:
    """As after fifteen minutes."""
    Confirmation.objects.filter(pk=card.pk).update(expires_at=timezone.now())
    Card.objects.filter(pk=card.pk).update(expires_at=timezone.now())


# --- Limits -----------------------------------------------------------------------------------------------------------


def ends(chatter: Chatter, *answers: Any, **options: Any) -> str:
    """The code with which a turn that these answers are played to ends; its notice says the same."""
    for name, value in options.items():
        factories.set_setting(name, value)
    with scripted.playing(*answers):
        turn = chatter.ask()
    assert turn.state == "failed"
    assert chatter.told()[-1] == ("notice", turn.code)
    return turn.code


def test_the_rounds_of_a_turn_are_limited(chatter: Chatter) -> None:
    answers = [[call(text=str(number))] for number in range(3)]
    assert ends(chatter, *answers, agent_rounds=3) == "limit_rounds"
    assert chatter.messages()[-1].content == "Ended: the limit of 3 rounds in one turn is reached."


def test_the_calls_of_a_turn_are_limited_and_each_gets_a_result(chatter: Chatter) -> None:
    calls = [call(text=str(number)) for number in range(4)]
    assert ends(chatter, calls, agent_calls=2) == "limit_calls"
    assert [outcome for role, outcome in chatter.told() if role == "tool"] == ["ok", "ok", "not_called", "not_called"]


def test_the_very_same_call_is_stopped_after_three(chatter: Chatter) -> None:
    same = [
        ToolCall(id="1", name="desk_find", arguments='{"text": "a", "size": 1}'),
        ToolCall(id="2", name="desk_find", arguments='{ "size": 1.0, "text": "a" }'),
    ]
    assert ends(chatter, *[[call] for call in same * 2]) == "limit_repeats"
    assert [outcome for role, outcome in chatter.told() if role == "tool"] == ["ok", "ok", "ok", "not_called"]


def test_the_very_same_call_is_counted_over_a_follow_up_too(chatter: Chatter) -> None:
    factories.set_setting("agent_repeats", 1)
    with scripted.playing([call(text="a"), put()], [text("Please confirm.")], [call(text="a")]):
        chatter.ask()
        chatter.confirm(chatter.cards()[0])
        (turn,) = run_queued()
    assert (turn.state, turn.code) == ("failed", "limit_repeats")


def test_a_turn_has_a_time(chatter: Chatter, monkeypatch: pytest.MonkeyPatch) -> None:
    factories.set_setting("agent_turn_seconds", 5)
    with scripted.playing([text("Wait"), scripted.HANG]) as script:
        turn = chatter.ask()
    assert (turn.state, turn.code, script.cut_off) == ("failed", "limit_time", 1)
    assert chatter.told()[1:] == [("assistant", "Wait"), ("notice", "limit_time")]


def test_a_long_result_is_cut_for_the_model_and_the_chat_says_so(chatter: Chatter) -> None:
    factories.set_setting("agent_result_chars", 500)
    with scripted.playing([call(size=2_000), call(size=3_000)], [text("Long.")]) as script:
        chatter.ask()
    told = [json.loads(line.text) for line in script.asks[1].history if isinstance(line, Resulted)]
    assert [(entry["truncated"], len(entry["data_begins"])) for entry in told] == [(True, 500)] * 2
    assert chatter.told().count(("notice", "result_truncated")) == 1
    assert chatter.messages()[2].tool_summary["truncated"] is True  # type: ignore[index]


def test_a_long_chat_is_cut_before_it_is_sent_and_says_so_once(chatter: Chatter) -> None:
    factories.set_setting("agent_history_chars", 1_000)
    with scripted.playing(*[[text("y" * 300)] for _ in range(5)]) as script:
        for number in range(5):
            chatter.ask(f"{number}" * 300)
    assert all(sum(len(line.text) for line in ask.history) <= 1_000 for ask in script.asks)
    assert chatter.told().count(("notice", "history_cut")) == 1
    assert script.asks[-1].history[-1] == Said(text="4" * 300)


def test_a_text_longer_than_the_models_window_ends_with_its_reason(chatter: Chatter) -> None:
    with scripted.playing(context_chars=100):
        turn = chatter.ask("x" * 101)
    assert (turn.state, turn.code) == ("failed", "limit_history")


def test_the_tokens_and_the_money_of_a_turn_are_limited(chatter: Chatter) -> None:
    spent = [call(text="a"), Usage(input_tokens=60, output_tokens=40)]
    assert ends(chatter, spent, agent_turn_tokens=100) == "limit_turn_tokens"
    factories.set_setting("agent_turn_tokens", 1_000_000)
    assert ends(chatter, agent_turn_cost="0") == "limit_turn_cost"


def test_a_persons_day_is_limited_and_their_own_setting_goes_before(chatter: Chatter) -> None:
    AgentSetting.objects.create(user=chatter.person.user, daily_tokens=100)
    with scripted.playing([text("Hello."), Usage(input_tokens=100)]):
        assert chatter.ask().state == "done"
    assert ends(chatter) == "limit_daily_tokens"
    AgentSetting.objects.update(daily_tokens=None, daily_cost=Decimal("0.5"))
    ModelCall.objects.update(cost=Decimal("0.5"))
    assert ends(chatter) == "limit_daily_cost"


def test_the_turns_of_a_person_at_once_are_limited(chatter: Chatter) -> None:
    factories.set_setting("agent_turns_at_once", 1)
    other = Chatter(person=chatter.person, chat=make_other(chatter))
    gate = scripted.Gate()
    with scripted.playing([gate, text("Hello.")]):
        first, second = chatter.send(), other.send()

        def crowd() -> Turn:
            gate.wait()
            found = run(second)
            gate.open()
            return found

        done, crowded = at_once(lambda: run(first), crowd)
    assert (done.state, crowded.state, crowded.code) == ("done", "failed", "limit_turns_at_once")
    assert other.told()[-1] == ("notice", "limit_turns_at_once")


def make_other(chatter: Chatter) -> Conversation:
    return make_chat(chatter.person.user)


def test_an_endless_answer_is_cut(chatter: Chatter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_CHARS", 50)
    assert ends(chatter, [text("x" * 40), text("y" * 40), scripted.HANG]) == "limit_answer"
    assert len(chatter.messages()[1].content) == 50


# --- Ends -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "code",
    [
        "provider_rate_limited",
        "provider_unreachable",
        "provider_cut",
        "provider_invalid",
        "no_model",
    ],
)
def test_a_failure_of_the_provider_keeps_the_text_and_says_why(chatter: Chatter, code: Any) -> None:
    with scripted.playing([text("Half of it"), Failure(code, "detail of the operator")], [text("Whole.")]) as script:
        turn = chatter.ask("Go")
        assert (turn.state, turn.code) == ("failed", code)
        assert chatter.told()[1:] == [("assistant", "Half of it"), ("notice", code)]
        assert run(chatter.retry()).state == "done"
    assert chatter.told()[-1] == ("assistant", "Whole.")
    assert faults(script.asks[1].history) == []
    assert "detail of the operator" not in json.dumps(list(Message.objects.values_list("content", flat=True)))
    assert list(ModelCall.objects.order_by("started_at").values_list("code", flat=True)) == [code, ""]


def test_a_window_smaller_than_its_operator_thought_is_asked_once_more_with_half_of_the_chat(chatter: Chatter) -> None:
    factories.set_setting("agent_history_chars", 2_000)
    overflow = [Failure("context_overflow")]
    with scripted.playing([text("y" * 800)], overflow, [text("Short.")]) as script:
        chatter.ask("x" * 900)
        assert chatter.ask("And now?").state == "done"
    lengths = [sum(len(line.text) for line in ask.history) for ask in script.asks]
    assert lengths == [900, 1_708, 8]
    assert ("notice", "history_cut") in chatter.told()
    assert faults(script.asks[2].history) == []


def test_an_empty_and_a_cut_answer_end_with_a_reason(chatter: Chatter) -> None:
    assert ends(chatter, []) == "answer_empty"
    assert ends(chatter, [text("And then"), Usage(is_cut=True)]) == "answer_cut"


def test_an_answer_of_a_model_that_can_not_be_stored_as_it_is_is_stored_without(chatter: Chatter) -> None:
    with scripted.playing([text("a\x00b\ud800c")]):
        assert chatter.ask().state == "done"
    assert chatter.told()[-1] == ("assistant", "ab?c")


def test_a_fault_of_our_own_ends_the_turn_with_a_reason(chatter: Chatter, settings: Any) -> None:
    settings.AGENT_MODEL = "tests.agent.test_turns.broken"
    turn = chatter.ask()
    assert (turn.state, turn.code) == ("failed", "internal_error")


def broken(person_id: str) -> Any:
    raise RuntimeError("a secret detail")


def test_a_turn_can_be_tried_again_only_when_it_did_not_end_well(chatter: Chatter) -> None:
    assert refused(chatter.retry) == ("conflict", "nothing_to_retry")
    with scripted.playing([text("Hello.")]):
        chatter.ask()
    assert refused(chatter.retry) == ("conflict", "nothing_to_retry")
    chatter.send()
    assert refused(chatter.retry)[0] == "turn_running"


def test_a_queued_turn_is_stopped_at_once_and_never_runs(chatter: Chatter) -> None:
    turn = chatter.send()
    assert chatter.stop()["state"] == "stopped"
    with scripted.playing() as script:
        run(turn)
    assert (script.asks, chatter.told()[-1], chatter.last().state) == ([], ("notice", "stopped"), "stopped")
    assert chatter.stop()["state"] == "stopped"


def test_a_stop_during_a_tool_frees_the_chat_at_once_and_the_tools_result_is_dropped(
    chatter: Chatter, tmp_path: Path
) -> None:
    gate = Gate(tmp_path)
    looking: list[scripted.Step] = [text("Let me see."), call(gate=str(gate.path)), put()]
    with scripted.playing(looking, [text("Here I am.")]) as script:
        turn = chatter.send("Go")

        def stop_and_go_on() -> Turn:
            with gate.closed():
                gate.wait_for("find")
                assert chatter.stop()["state"] == "stopped"
                return chatter.ask("And now?")

        stopped, done = at_once(lambda: run(turn), stop_and_go_on)
    assert (stopped.state, done.state, Card.objects.count()) == ("stopped", "done", 0)
    assert chatter.told() == [
        ("user", "Go"),
        ("assistant", "Let me see."),
        ("notice", "stopped"),
        ("user", "And now?"),
        ("assistant", "Here I am."),
    ]
    assert faults(script.asks[1].history) == []
    assert results.INTERRUPTED in [line.text for line in script.asks[1].history if isinstance(line, Resulted)]


@pytest.mark.parametrize("taken", ["stopped", "deleted", "lease over", "another attempt"])
def test_an_attempt_that_lost_its_turn_writes_nothing(chatter: Chatter, taken: str) -> None:
    attempt = turn_state.claim(chatter.send(), at_once=9)
    assert attempt is not None
    match taken:
        case "stopped":
            chatter.stop()
        case "deleted":
            chatter.delete()
        case "lease over":
            Turn.objects.update(lease_until=timezone.now() - timedelta(seconds=1))
        case _:
            Turn.objects.update(attempt=2)
    before = chatter.told()
    draft = Draft(attempt)
    draft.add("Too late.")
    with pytest.raises(turn_state.Lost):
        draft.save(live=True)
    with pytest.raises(turn_state.Lost):
        turn_state.finish(attempt, Turn.State.DONE)
    turn_state.renew([attempt])
    assert (chatter.told(), turn_state.is_current(attempt)) == (before, False)


def test_a_tool_that_hangs_past_the_turns_time_keeps_neither_the_lease_nor_the_chat(
    chatter: Chatter, tmp_path: Path, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AGENT_LEASE_SECONDS = 1
    factories.set_setting("agent_turn_seconds", 5)
    monkeypatch.setattr(loop, "GRACE_SECONDS", -3)
    gate = Gate(tmp_path)
    with scripted.playing([text("Let me see."), call(gate=str(gate.path))]):
        turn = chatter.send("Go")

        def look_on() -> None:
            with gate.closed():
                gate.wait_for("find")
                wait_until(lambda: sweep().turns_ended == 1, seconds=20)

        found, _ = at_once(lambda: run(turn), look_on)
    assert (found.state, chatter.told()[-1]) == ("interrupted", ("notice", "interrupted"))


def test_a_long_tool_keeps_its_lease_meanwhile(chatter: Chatter, tmp_path: Path, settings: Any) -> None:
    # More than what the thread of an earlier test's leases may still sleep.
    settings.AGENT_LEASE_SECONDS = 20
    gate = Gate(tmp_path)
    with scripted.playing([call(gate=str(gate.path))], [text("Found.")]):
        turn = chatter.send("Go")

        def look_on() -> None:
            with gate.closed():
                gate.wait_for("find")
                first = Turn.objects.get(pk=turn).lease_until
                wait_until(lambda: Turn.objects.get(pk=turn).lease_until != first)
                assert sweep().turns_ended == 0

        found, _ = at_once(lambda: run(turn), look_on)
    assert found.state == "done"


def test_a_queued_turn_is_sent_again_and_ends_when_no_worker_comes(chatter: Chatter) -> None:
    turn = chatter.send()
    sent.clear()
    assert sweep().turns_sent == 0
    Turn.objects.update(sent_at=timezone.now() - timedelta(seconds=31))
    assert (sweep().turns_sent, sent) == (1, [("run_turn", str(turn))])
    Turn.objects.update(created_at=timezone.now() - timedelta(minutes=5, seconds=1))
    assert sweep().turns_ended == 1
    assert (chatter.last().state, chatter.told()[-1]) == ("failed", ("notice", "no_worker"))
    assert chatter.retry() != turn


def test_a_lost_session_ends_the_turn_with_its_reason(chatter: Chatter) -> None:
    turn = chatter.send()
    end_session(chatter)
    found = run(turn)
    assert (found.state, found.code) == ("failed", "session_gone")


@pytest.mark.parametrize("taken", ["session", "permission", "switch", "module"])
def test_what_is_taken_in_mid_turn_ends_it_before_the_next_call(chatter: Chatter, taken: str) -> None:
    gate = scripted.Gate()
    with scripted.playing([text("Let me see."), gate, put(), call()], []) as script:
        turn = chatter.send()

        def take() -> None:
            gate.wait()
            match taken:
                case "session":
                    end_session(chatter)
                case "permission":
                    factories.revoke(chatter.person.user, access.PERMISSION)
                case "switch":
                    AgentSetting.objects.create(user=chatter.person.user, is_enabled=False)
                case "module":
                    factories.set_setting("disabled_modules", ["agent"])
            gate.open()

        found, _ = at_once(lambda: run(turn), take)
    code = "session_gone" if taken == "session" else "forbidden"
    assert (found.state, found.code, len(script.asks)) == ("failed", code, 1)
    assert (Card.objects.count(), Confirmation.objects.count()) == (0, 0)
    rows = chatter.told()
    assert rows[1:] == [("assistant", "Let me see."), ("notice", code)]


@pytest.mark.parametrize("taken", ["role", "box"])
def test_a_right_or_box_taken_in_mid_turn_refuses_the_next_call(chatter: Chatter, taken: str) -> None:
    gate = scripted.Gate()
    with scripted.playing([gate, put()], [text("I may not.")]):
        turn = chatter.send()

        def take() -> None:
            gate.wait()
            if taken == "role":
                factories.revoke(chatter.person.user, CHANGE)
            else:
                factories.set_setting("api_session_write_modules", [])
            gate.open()

        found, _ = at_once(lambda: run(turn), take)
    outcome = "forbidden" if taken == "role" else "module_write_disabled"
    assert (found.state, ("tool", outcome) in chatter.told(), Card.objects.count()) == ("done", True, 0)


def end_session(chatter: Chatter) -> None:
    LiveSession.objects.filter(pk=chatter.person.session.pk).update(ended_at=timezone.now(), end_reason="signed_out")
    chatter.person.session = make_live_session(chatter.person.user)


def test_an_archived_chat_goes_on_and_a_deleted_one_stops(chatter: Chatter) -> None:
    gate = scripted.Gate()
    with scripted.playing([text("Half"), gate, call()], [text("Whole.")]) as script:
        turn = chatter.send()

        def remove() -> None:
            gate.wait()
            Conversation.objects.filter(pk=chatter.chat.pk).update(status="archived")
            chatter.delete()
            gate.open()

        found, _ = at_once(lambda: run(turn), remove)
    assert (found.state, found.code, len(script.asks)) == ("stopped", "chat_deleted", 1)
    assert [row for row in chatter.told() if row[0] != "assistant"] == [("user", "Hello.")]


def test_a_turn_in_an_archived_chat_saves_its_answer(chatter: Chatter) -> None:
    turn = chatter.send()
    Conversation.objects.filter(pk=chatter.chat.pk).update(status="archived")
    with scripted.playing([text("Hello.")]):
        assert run(turn).state == "done"
    assert chatter.told()[-1] == ("assistant", "Hello.")


def test_a_session_that_looks_as_somebody_else_is_refused_at_every_door(chatter: Chatter) -> None:
    (card,) = proposed(chatter, put())
    looking = Chatter(person=chatter.person, chat=chatter.chat, options={"impersonated": True})
    for door in (
        looking.send,
        looking.stop,
        looking.retry,
        lambda: looking.confirm(card),
        lambda: looking.reject(card),
    ):
        assert refused(door) == ("impersonated", None)
