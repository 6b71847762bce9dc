"""The cards of held writes (TU-3): drawn from the stored call, decided by their person through the gate, told to the model afterwards.

The gate's confirmation row decides; a card copies how it ended, once, by a conditional UPDATE, with a note in the chat. Who crashed
between the two left a card that says `waiting`: the next one who looks, or the sweep, makes it true.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.accounts.sessions import SessionRef
from apps.agent import (
    access,
    calls,
    deciding,
    events,
    follow_ups,
    limits,
    notices,
    refusals,
    results,
    shapes,
    turn_state,
    writing,
)
from apps.agent.access import Access
from apps.agent.calls import Done
from apps.agent.models import Card, Conversation, Message, Turn
from apps.agent.results import Result
from apps.agent.shapes import CardShape
from apps.api import availability, confirmations, executor, problems, registry
from apps.api.call import Answer, Outcome, Refusal
from apps.api.models import Confirmation
from apps.api.problems import Problem

State = Card.State

MOST_LISTED = 200

_DECIDED = (State.USED, State.REJECTED, State.EXPIRED)


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What a decision led to. `code`: of a confirmed write that was refused. `replaced_by`: the card that asks again, other values."""

    confirmation: CardShape
    replaced_by: CardShape | None = None
    code: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Who:
    """Whose decision it is, and the session that a follow-up acts for."""

    session: UUID
    context: Mapping[str, Any]
    result_chars: int


# --- The turn loop's side ---------------------------------------------------------------------------------------------


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


# --- The person's side ------------------------------------------------------------------------------------------------


def list_confirmations(ref: object, conversation_uuid: object, *, impersonated: bool) -> list[CardShape]:
    """The chat's cards, oldest first, at most the 200 newest; those of tools that the session may not call now are left out (CH-4)."""
    allowed = access.authorize(ref, impersonated=impersonated)
    chat = access.own_chat(allowed, conversation_uuid)
    visible = _visible(allowed)
    rows = Card.objects.filter(conversation=chat, tool__in=visible).order_by("-created_at", "-pk")[:MOST_LISTED]
    return [_shape(card) for card in reversed(rows)]


def confirm(
    ref: SessionRef,
    conversation_uuid: object,
    card_uuid: object,
    *,
    impersonated: bool,
    context: Mapping[str, Any] | None = None,
) -> Decided:
    """The person's yes: the write runs once, if nothing changed. Raises Problem with the gate's code when it did not run."""
    allowed = access.authorize(ref, impersonated=impersonated)
    card = _own(allowed, conversation_uuid, card_uuid)
    who = _who(ref, allowed, context)
    with deciding.alone(card.pk):
        outcome = executor.redeem_as(
            ref,
            "admin",
            card.pk,
            card.tool,
            card.arguments,
            impersonated=impersonated,
            via=calls.VIA,
            request_context=context,
        )
        return _confirmed(card, outcome, who)


def reject(
    ref: SessionRef,
    conversation_uuid: object,
    card_uuid: object,
    *,
    impersonated: bool,
    context: Mapping[str, Any] | None = None,
) -> Decided:
    """The person's no. Raises Problem when it was decided or expired before."""
    allowed = access.authorize(ref, impersonated=impersonated)
    card = _own(allowed, conversation_uuid, card_uuid)
    who = _who(ref, allowed, context)
    with deciding.alone(card.pk):
        outcome = executor.reject_as(ref, card.pk, impersonated=impersonated, via=calls.VIA)
        if isinstance(outcome, Refusal):
            _settle(card, who)
            raise _bare(outcome.problem)
        _record(card, State.REJECTED, "rejected", who)
    return Decided(confirmation=_again(card))


def settle(card: Card, *, now: datetime) -> bool:
    """The sweep's: an expired card ends, and one whose decision was not written down is made true. False when there is nothing to do."""
    confirmations.expire_late(card.pk, now=now)
    turn = card.turn
    context = {} if turn is None else calls.context_of(turn.request_context)
    session = UUID(int=0) if turn is None else turn.session_uuid
    return _settle(card, _Who(session=session, context=context, result_chars=0))


def _confirmed(card: Card, outcome: Outcome, who: _Who) -> Decided:
    if isinstance(outcome, Answer) and results.is_held(outcome):
        return Decided(confirmation=_replaced(card, json.loads(outcome.body)), replaced_by=_successor(card))
    if isinstance(outcome, Answer):
        _record(card, State.USED, "confirmed", who, result=_result(card, outcome, who))
        return Decided(confirmation=_again(card))
    problem = outcome.problem
    if problem.code == "confirm_token_invalid" or _gate_state(card) != State.USED:
        _settle(card, who)
        raise _bare(problem)
    # Its one use is gone, and nobody else could take it meanwhile: the handler itself refused.
    _record(card, State.USED, "confirmed_failed", who, result=_result(card, outcome, who), problem=problem.code)
    return Decided(confirmation=_again(card), code=problem.code)


def _result(card: Card, outcome: Outcome, who: _Who) -> Result:
    return results.of(card.tool, outcome, most_chars=who.result_chars)


def _settle(card: Card, who: _Who) -> bool:
    """Copy what the gate says; nothing while it says `waiting`."""
    match _gate_state(card):
        case State.USED:
            return _record(card, State.USED, "confirmed_unknown", who)
        case State.REJECTED:
            return _record(card, State.REJECTED, "rejected", who)
        case State.EXPIRED | None:
            return _record(card, State.EXPIRED, "expired", who)
    return False


def _gate_state(card: Card) -> str | None:
    """Of the gate's row, as of now: one past its time has expired, written or not. None: it was deleted long ago."""
    row = Confirmation.objects.filter(pk=card.pk).values_list("state", "expires_at").first()
    if row is None:
        return None
    state, expires_at = row
    return State.EXPIRED if state == State.WAITING and expires_at <= timezone.now() else state


def _record(
    card: Card,
    state: Card.State,
    code: str,
    who: _Who,
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
            content=notices.text(code, tool=_title(card.tool)),
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


def _replaced(card: Card, prompt: Mapping[str, Any]) -> CardShape:
    """The values changed: the card ends, and one with the new values asks again in its place."""
    now = timezone.now()
    with turn_state.brief_transaction():
        turn_state.locked_chat(card.conversation_id)
        if Card.objects.filter(pk=card.pk, state=State.WAITING).update(state=State.EXPIRED, decided_at=now):
            new = _added(card.message, card.turn, card.tool, card.arguments, prompt)
            # The model hears of the successor's end alone.
            Card.objects.filter(pk=card.pk).update(replaced_by=new, told_in=card.turn)
            events.confirmation_changed(card.conversation_id, card.pk)
    return _again(card)


def _successor(card: Card) -> CardShape | None:
    new = Card.objects.filter(replaces=card).first()
    return None if new is None else _shape(new)


# --- What a client gets -----------------------------------------------------------------------------------------------


def _own(allowed: Access, conversation_uuid: object, card_uuid: object) -> Card:
    """A card of the person's own chat, else `not_found`. Whether its tool is open now is the gate's question."""
    chat, uuid = access.own_chat(allowed, conversation_uuid), access.known(card_uuid)
    cards = Card.objects.select_related("message", "turn").filter(conversation=chat)
    card = None if uuid is None else cards.filter(pk=uuid).first()
    if card is None:
        raise refusals.not_found()
    return card


def _who(ref: SessionRef, allowed: Access, context: Mapping[str, Any] | None) -> _Who:
    chars = limits.of(allowed.person, allowed.options).result_chars
    return _Who(session=ref.session_uuid, context=context or {}, result_chars=chars)


def _visible(allowed: Access) -> list[str]:
    found = availability.tool_availability(allowed.scope, now=allowed.switches)
    return [tool.name for tool in found if tool.status == "available"]


def _again(card: Card) -> CardShape:
    return _shape(Card.objects.get(pk=card.pk))


def _shape(card: Card) -> CardShape:
    """With the true state of this moment, whatever no sweep has written yet (TU-3)."""
    state = card.state if card.state != State.WAITING else (_gate_state(card) or State.EXPIRED)
    return shapes.confirmation(card, title=_title(card.tool), state=state, now=timezone.now())


def _title(name: str) -> str:
    tool = registry.current().find("admin", name)
    return name if tool is None else str(tool.title)


def _bare(problem: Problem) -> Problem:
    """The gate's refusal without what a tool may have written into it (CH-4)."""
    is_core = problem.code in problems.CORE and problem.code != "validation_failed"
    reason = {name: problem.context[name] for name in ("reason",) if name in problem.context}
    detail = problem.detail if is_core else f"{problem.kind.title}."
    return Problem(problem.code, detail, kind=problem.kind, retry=problem.retry, headers=problem.headers, **reason)
