"""Random interleavings of all that may happen to a chat (issue 7): what must hold, holds after each of them.

The history given to a provider is well formed, no write runs without its confirmation and none twice, a worker that lost its turn writes
nothing, and nothing of a tool's result or arguments reaches a client.
"""

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.accounts.models import LiveSession
from apps.agent import asking, conversations, loop, turns
from apps.agent.models import Card, Conversation, Message, Turn
from apps.api import registry
from apps.api.models import Confirmation, KeyFamily, Setting
from apps.api.problems import Problem
from tests.accounts.factories import make_live_session
from tests.agent import scripted
from tests.agent.chatting import Chatter, make_chatter, sweep
from tests.agent.desk import SECRET_ARGUMENT, SECRET_RESULT, make_desk
from tests.agent.scripted import Text, ToolCall
from tests.agent.well_formed import faults
from tests.api import factories
from tests.api.probe import CHANGE

pytestmark = pytest.mark.sqlite

FRAME = {"type", "conversation", "message", "turn", "confirmation", "version"}


class Crash(BaseException):
    """The worker's process dies here."""


# --- What may happen --------------------------------------------------------------------------------------------------

_ASIDE = st.sampled_from(
    [
        "stop",
        "confirm",
        "confirm_twice",
        "reject",
        "expire",
        "change",
        "archive",
        "delete",
        "log_out",
        "sweep",
        "pause",
        "crash",
    ]
)
_PIECE = st.one_of(
    st.sampled_from(["say", "find", "put", "put", "same", "broken", "unknown", "fail"]), _ASIDE.map(lambda it: f"!{it}")
)
_ANSWERS = st.lists(st.lists(_PIECE, min_size=1, max_size=5), min_size=1, max_size=3)
_STEP: st.SearchStrategy[tuple[str, list[list[str]]]] = st.one_of(
    st.tuples(st.sampled_from(["send", "send", "send", "retry", "follow"]), _ANSWERS),
    st.tuples(
        st.sampled_from(
            [
                "stop",
                "confirm",
                "confirm_twice",
                "reject",
                "expire",
                "change",
                "archive",
                "restore",
                "log_out",
                "sweep",
                "lose",
                "text",
            ]
        ),
        st.just([]),
    ),
)


@dataclass
class World:
    """One chat of one person, and the books that a reader keeps of it."""

    chatter: Chatter
    script: scripted.Script
    number: int = 0
    confirmed: list[Any] = field(default_factory=list)
    # Of turns that were taken from their worker: how many lines of theirs there were then.
    taken: dict[Any, int] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)

    def do(self, what: str) -> None:
        """One thing that a person, the time or the machine does. A refusal is an answer like any other."""
        try:
            getattr(self, f"do_{what}")()
        except Problem as problem:
            self.seen.append(json.dumps([problem.detail, str(problem.context)]))

    def do_send(self) -> None:
        self.chatter.send(f"Text {self.number}")

    do_text = do_send

    def do_retry(self) -> None:
        self.chatter.retry()

    def do_follow(self) -> None:
        """A follow-up may be queued already."""

    def do_stop(self) -> None:
        self.chatter.stop()

    def do_confirm(self) -> None:
        card = self.card()
        if card is not None:
            decided = self.chatter.confirm(card)
            self.seen.append(str(decided.code))
            if decided.code is None and decided.confirmation["state"] == "used":
                self.confirmed.append(card.pk)

    def do_confirm_twice(self) -> None:
        card = self.card()
        for _ in range(2 if card is not None else 0):
            decided = self.chatter.confirm(card)  # type: ignore[arg-type]
            if decided.code is None and decided.confirmation["state"] == "used":
                self.confirmed.append(card.pk)  # type: ignore[union-attr]

    def do_reject(self) -> None:
        card = self.card()
        if card is not None:
            self.chatter.reject(card)

    def do_expire(self) -> None:
        card = self.card()
        if card is not None:
            Confirmation.objects.filter(pk=card.pk).update(expires_at=timezone.now())
            Card.objects.filter(pk=card.pk).update(expires_at=timezone.now())

    def do_change(self) -> None:
        factories.set_setting(self.name, self.number)

    def do_archive(self) -> None:
        conversations.archive_conversation(self.chatter.person.ref, self.chatter.chat.pk, impersonated=False)

    def do_delete(self) -> None:
        self.chatter.delete()

    def do_restore(self) -> None:
        conversations.restore_conversation(self.chatter.person.ref, self.chatter.chat.pk, impersonated=False)

    def do_log_out(self) -> None:
        person = self.chatter.person
        LiveSession.objects.filter(pk=person.session.pk).update(ended_at=timezone.now(), end_reason="signed_out")
        person.session = make_live_session(person.user)

    def do_sweep(self) -> None:
        sweep()

    def do_lose(self) -> None:
        self.running().update(lease_until=Now() - timedelta(seconds=1))

    def do_pause(self) -> None:
        """The worker sleeps past its lease, and goes on afterwards."""
        for turn in self.running():
            self.running().filter(pk=turn.pk).update(lease_until=Now() - timedelta(seconds=1))
            sweep()
            self.taken[turn.pk] = self.lines(turn.pk)

    def card(self) -> Card | None:
        """The oldest one that waits, else the last one."""
        rows = Card.objects.filter(conversation=self.chatter.chat).order_by("created_at", "pk")
        return rows.filter(state="waiting").first() or rows.last()

    def running(self) -> Any:
        return Turn.objects.filter(conversation=self.chatter.chat, state="running")

    def lines(self, turn: Any) -> int:
        return Message.objects.filter(turn=turn, role__in=["assistant", "tool"]).count()

    @property
    def name(self) -> str:
        return f"thing of {self.chatter.chat.pk}"

    # --- The worker ---------------------------------------------------------------------------------------------------

    def work(self, answers: list[list[str]]) -> None:
        """Be the worker of what is queued, while the things of the script happen beside it."""
        turn = Turn.objects.filter(conversation=self.chatter.chat, state="queued").first()
        if turn is None:
            return
        played = [[self.step(piece) for piece in answer] for answer in answers]
        self.script.answers = [*played, *[[Text(text="That is all.")] for _ in range(20)]]
        try:
            loop.run(turn.pk)
        except Crash:
            self.do_lose()

    def step(self, piece: str) -> Any:
        self.number += 1
        put = {"name": self.name, "value": self.number}
        found = {
            "say": Text(text=f"Word {self.number}. "),
            "find": call("desk_find", {"text": f"{SECRET_ARGUMENT} {self.number}"}),
            "same": call("desk_find", {"text": SECRET_ARGUMENT}),
            "fail": call("desk_find", {"text": SECRET_ARGUMENT, "fail": "refuse"}),
            "put": call("desk_put", put),
            "broken": ToolCall(id="1", name="desk_find", arguments=f'{{"text": "{SECRET_ARGUMENT}'),
            "unknown": call("desk_gone", {"text": SECRET_ARGUMENT}),
        }
        return found.get(piece) or Aside(self, piece[1:])

    # --- What must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        for ask in self.script.asks:
            assert faults(ask.history) == []
        self.script.asks.clear()
        assert len(self.confirmed) == len(set(self.confirmed))
        assert self.effects() == len(self.confirmed)
        used = set(Confirmation.objects.filter(pk__in=self.uuids(), state="used").values_list("pk", flat=True))
        assert used == set(self.confirmed)
        for turn, lines in self.taken.items():
            assert self.lines(turn) == lines
        assert Turn.objects.filter(conversation=self.chatter.chat, state__in=Turn.LIVE).count() <= 1

    def check_end(self) -> None:
        """Once time has done its part nothing is left open, and every end has its reason."""
        chat = self.chatter.chat
        Turn.objects.filter(conversation=chat, state="queued").update(created_at=timezone.now() - timedelta(minutes=6))
        self.do_lose()
        sweep()
        assert (
            not Turn.objects.filter(conversation=chat, state__in=Turn.LIVE)
            .exclude(follows=None, state="queued")
            .exists()
        )
        assert not Message.objects.filter(conversation=chat, live=True).exclude(turn__state__in=Turn.LIVE).exists()
        for turn in Turn.objects.filter(conversation=chat).exclude(state__in=["done", *Turn.LIVE]):
            noted = Message.objects.filter(turn=turn, role="notice", code=turn.code).exists()
            assert noted or turn.code in ("chat_deleted", "no_worker", "interrupted") or self.is_deleted()
        for card in Card.objects.filter(conversation=chat):
            gate = Confirmation.objects.get(pk=card.pk).state
            assert card.state == gate
        numbers = list(Message.objects.filter(conversation=chat).order_by("number").values_list("number", flat=True))
        assert numbers == list(range(1, len(numbers) + 1))

    def look(self) -> str:
        """Every byte that a client may have of the chat, but the cards."""
        person, found = self.chatter.person.ref, []
        if not self.is_deleted():
            found.append(conversations.get_conversation(person, self.chatter.chat.pk, impersonated=False))
            found.append(turns.get_turn(person, self.chatter.chat.pk, impersonated=False))  # type: ignore[arg-type]
        return str(found) + "".join(self.seen)

    def is_deleted(self) -> bool:
        return Conversation.objects.get(pk=self.chatter.chat.pk).status == "deleted"

    def effects(self) -> int:
        return KeyFamily.objects.count() - self.before

    def uuids(self) -> list[Any]:
        return list(Card.objects.filter(conversation=self.chatter.chat).values_list("pk", flat=True))

    before: int = 0


class Aside(scripted.Hang):
    """Something happens beside the model's answer: in a thread of its own, as in another tab or process."""

    def __init__(self, world: World, what: str) -> None:
        self.world, self.what = world, what


class Interrupted(scripted.ScriptedModel):
    async def _played(self, step: Any) -> Any:
        if not isinstance(step, Aside):
            async for piece in super()._played(step):
                yield piece
            return
        if step.what == "crash":
            raise Crash
        beside(lambda: step.world.do(step.what))
        await asyncio.sleep(0)


def beside(work: Callable[[], None]) -> None:
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]


def call(name: str, arguments: dict[str, Any]) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=json.dumps(arguments))


@pytest.fixture
def desk(transactional_db: None, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    settings.API_SEND_TASK = "tests.agent.chatting.keep_task"
    monkeypatch.setattr(scripted, "ScriptedModel", Interrupted)
    monkeypatch.setattr(asking, "LOOKS_EVERY", 0.0)
    factories.set_setting("api_session_write_modules", ["desk"])
    factories.set_setting("api_person_budget", 100_000)
    with registry.using(make_desk()):
        yield


@settings(
    max_examples=60,
    phases=[Phase.explicit, Phase.generate],
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(_STEP, min_size=2, max_size=7))
def test_whatever_happens_in_whatever_order(
    desk: None, heard: list[dict[str, Any]], caplog: pytest.LogCaptureFixture, steps: list[tuple[str, list[list[str]]]]
) -> None:
    heard.clear()
    caplog.clear()
    with scripted.playing() as script, caplog.at_level(logging.INFO):
        world = World(make_chatter(permissions=[CHANGE]), script, before=KeyFamily.objects.count())
        for what, answers in steps:
            world.number += 1
            world.do(what)
            world.work(answers)
            world.check()
        world.check_end()
        seen = world.look()
    assert SECRET_RESULT not in seen
    assert SECRET_ARGUMENT not in seen
    assert all(set(frame) <= FRAME for frame in heard)
    assert SECRET_RESULT not in str(heard) + caplog.text
    assert SECRET_ARGUMENT not in str(heard) + caplog.text
    Setting.objects.filter(name=world.name).delete()
