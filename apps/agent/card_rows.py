"""The rows of cards: made by the turn loop, ended once by a conditional UPDATE, with a note in the chat and perhaps a follow-up (TU-3)."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.agent import events, follow_ups, notices, turn_state, writing
from apps.agent.calls import Done
from apps.agent.models import Card, Conversation, Message, Turn
from apps.agent.results import Result
from apps.api import registry
from apps.api.models import Confirmation

State = Card.State

_DECIDED = (State.USED, State.REJECTED, State.EXPIRED)


@dataclass(frozen=True, kw_only=True)
class Who:
    """Whose decision it is, and the session that a follow-up acts for."""

    session: UUID
    context: Mapping[str, Any]
    result_chars: int


def add(message: Message, turn: Turn, tool: str, done: Done) -> Card:
    """The card of a write that was held just now, in the open transaction."""
    assert done.outcome is not None and done.input is not None  # noqa: PT018, S101 - it was held
    return _added(message, turn, tool, done.input, json.loads(done.outcome.body))


def _added(message: Message, turn: Turn | None, tool: str, given: Any, prompt: Mapping[str, Any]) -> Card:
    card = Card.objects.create(
        uuid=UUID(prompt["confirmation_id"]),
        conversation_id=message.conversation_id,
        turn=turn,
        message=message,
        tool=tool,
        arguments=given,
        preview=prompt["preview"],
        created_at=timezone.now(),
        expires_at=datetime.fromisoformat(prompt["expires_at"]),
    )
    events.confirmation_changed(message.conversation_id, card.pk)
    return card


def mark_told(chat: Conversation, turn: Turn) -> None:
    """The history that was read under the same lock holds their notes."""
    Card.objects.filter(conversation=chat, told_in=None, state__in=_DECIDED).update(told_in=turn)


def gate_state(card: Card) -> str | None:
    """Of the gate's row, as of now. None: it was deleted long ago."""
    return gate_states([card]).get(card.pk)


def gate_states(cards: Iterable[Card]) -> dict[UUID, str]:
    """The same of many, with one query. A row past its time has expired, written or not."""
    now = timezone.now()
    rows = Confirmation.objects.filter(pk__in=[card.pk for card in cards]).values_list("pk", "state", "expires_at")
    return {
        uuid: State.EXPIRED if state == State.WAITING and expires_at <= now else state
        for uuid, state, expires_at in rows.order_by("pk")
    }


def record(
    card: Card,
    state: Card.State,
    code: str,
    who: Who,
    *,
    result: Result | None = None,
    problem: str = "",
) -> bool:
    """The card's one move, with its note and perhaps the turn that tells the model. False when it was moved before."""
    now = timezone.now()
    with turn_state.brief_transaction():
        chat = turn_state.locked_chat(card.conversation_id)
        waiting = Card.objects.filter(pk=card.pk, state=State.WAITING)
        if chat is None or not waiting.update(state=state, code=problem, decided_at=now):
            return False
        told = _told(card, code, result)
        writing.append(
            chat.pk,
            role=Message.Role.NOTICE,
            now=now,
            content=notices.text(code, tool=title_of(card.tool)),
            code=code,
            turn_id=card.turn_id,
            tool_result={"text": told},
        )
        events.confirmation_changed(chat.pk, card.pk)
        follow_ups.after_decision(chat, session=who.session, context=dict(who.context), now=now)
    return True


def _told(card: Card, code: str, result: Result | None) -> str:
    """The model's side of the note: the server's word, and data that nobody vouches for."""
    words = {
        "confirmed": "confirmed it, and it ran",
        "confirmed_failed": "confirmed it, but it was refused and did not run",
        "confirmed_unknown": "confirmed it; what came of it is not known: look before you propose it again",
        "rejected": "rejected it: it did not run",
        "expired": "did not confirm it in time: it did not run",
    }
    call = card.message.tool_call_id
    outcome = "" if result is None else f" Its outcome: {result.told}"
    return f"(Server: about your call {call} of {card.tool}: the person {words[code]}.{outcome})"


def replace(card: Card, prompt: Mapping[str, Any]) -> None:
    """The values changed: the card ends, and one with the new values asks again in its place."""
    now = timezone.now()
    with turn_state.brief_transaction():
        turn_state.locked_chat(card.conversation_id)
        if Card.objects.filter(pk=card.pk, state=State.WAITING).update(state=State.EXPIRED, decided_at=now):
            new = _added(card.message, card.turn, card.tool, card.arguments, prompt)
            # The model hears of the successor's end alone.
            Card.objects.filter(pk=card.pk).update(replaced_by=new, told_in=card.turn)
            events.confirmation_changed(card.conversation_id, card.pk)


def title_of(name: str) -> str:
    tool = registry.current().find("admin", name)
    return name if tool is None else str(tool.title)
