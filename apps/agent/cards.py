"""The cards of held writes (TU-3): drawn from the stored call, decided by their person through the gate, told to the model afterwards.

The gate's confirmation row decides; a card copies how it ended, once, by a conditional UPDATE, with a note in the chat. Who crashed
between the two left a card that says `waiting`: the next one who looks, or the sweep, makes it true.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.accounts.sessions import SessionRef
from apps.agent import access, calls, card_rows, deciding, limits, refusals, results, shapes
from apps.agent.access import Access
from apps.agent.card_rows import Who
from apps.agent.models import Card
from apps.agent.results import Result
from apps.agent.shapes import CardShape
from apps.api import availability, confirmations, executor, problems
from apps.api.call import Answer, Outcome, Refusal
from apps.api.handlers import Declared
from apps.api.problems import Problem

State = Card.State

MOST_LISTED = 200


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What a decision led to. `code`: of a confirmed write that was refused. `replaced_by`: the card that asks again, other values."""

    confirmation: CardShape
    replaced_by: CardShape | None = None
    code: str | None = None


# --- The person's side ------------------------------------------------------------------------------------------------


def list_confirmations(ref: object, conversation_uuid: object, *, impersonated: bool) -> list[CardShape]:
    """The chat's cards, oldest first, at most the 200 newest; those of tools that the session may not call now are left out (CH-4)."""
    allowed = access.authorize(ref, impersonated=impersonated)
    chat = access.own_chat(allowed, conversation_uuid)
    rows = Card.objects.filter(conversation=chat, tool__in=visible(allowed)).order_by("-created_at", "-pk")[
        :MOST_LISTED
    ]
    states = card_rows.gate_states(rows)
    return [shape(card, states) for card in reversed(rows)]


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
        card_rows.record(card, State.REJECTED, "rejected", who)
    shape = _again(card)
    # To say no needs no right to the tool; to see what was proposed does (CH-4).
    return Decided(
        confirmation=shape if card.tool in visible(allowed) else {**shape, "arguments": None, "preview": None}
    )


def settle(card: Card) -> bool:
    """The sweep's: an expired card ends, and one whose decision was not written down is made true. False when there is nothing to do."""
    turn = card.turn
    context = {} if turn is None else calls.context_of(turn.request_context)
    session = UUID(int=0) if turn is None else turn.session_uuid
    return _settle(card, Who(session=session, context=context, result_chars=0))


def _confirmed(card: Card, outcome: Outcome, who: Who) -> Decided:
    if isinstance(outcome, Answer) and results.is_held(outcome):
        card_rows.replace(card, json.loads(outcome.body))
        return Decided(confirmation=_again(card), replaced_by=_successor(card))
    if isinstance(outcome, Answer):
        card_rows.record(card, State.USED, "confirmed", who, result=_result(card, outcome, who))
        return Decided(confirmation=_again(card))
    problem = outcome.problem
    if problem.code == "confirm_token_invalid" or card_rows.gate_state(card) != State.USED:
        _settle(card, who)
        raise _bare(problem)
    # Its one use is gone, and nobody else could take it meanwhile: the handler refused, or it broke outside or in the commit.
    is_unknown = problem.kind.status >= 500 or problem.code == "idempotency_outcome_unknown"
    code = "confirmed_unknown" if is_unknown else "confirmed_failed"
    card_rows.record(card, State.USED, code, who, result=_result(card, outcome, who), problem=problem.code)
    return Decided(confirmation=_again(card), code=problem.code)


def _result(card: Card, outcome: Outcome, who: Who) -> Result:
    return results.of(card.tool, outcome, most_chars=who.result_chars)


def _settle(card: Card, who: Who) -> bool:
    """Copy what the gate says; nothing while it says `waiting`. A row past its time ends there too."""
    confirmations.expire_late(card.pk, now=timezone.now())
    match card_rows.gate_state(card):
        case State.USED:
            return card_rows.record(card, State.USED, "confirmed_unknown", who)
        case State.REJECTED:
            return card_rows.record(card, State.REJECTED, "rejected", who)
        case State.EXPIRED | None:
            return card_rows.record(card, State.EXPIRED, "expired", who)
    return False


def _successor(card: Card) -> CardShape | None:
    new = Card.objects.filter(replaces=card).first()
    return None if new is None else shape(new)


# --- What a client gets -----------------------------------------------------------------------------------------------


def _own(allowed: Access, conversation_uuid: object, card_uuid: object) -> Card:
    """A card of the person's own chat, else `not_found`. Whether its tool is open now is the gate's question."""
    chat, uuid = access.own_chat(allowed, conversation_uuid), access.known(card_uuid)
    cards = Card.objects.select_related("message", "turn").filter(conversation=chat)
    card = None if uuid is None else cards.filter(pk=uuid).first()
    if card is None:
        raise refusals.not_found()
    return card


def _who(ref: SessionRef, allowed: Access, context: Mapping[str, Any] | None) -> Who:
    chars = limits.of(allowed.person, allowed.options).result_chars
    return Who(session=ref.session_uuid, context=context or {}, result_chars=chars)


def visible(allowed: Access) -> list[str]:
    found = availability.tool_availability(allowed.scope, now=allowed.switches)
    return [tool.name for tool in found if tool.status == "available"]


def _again(card: Card) -> CardShape:
    return shape(Card.objects.get(pk=card.pk))


def shape(card: Card, states: Mapping[UUID, str] | None = None) -> CardShape:
    """With the true state of this moment, whatever no sweep has written yet (TU-3). `states`: the gate's, for a list."""
    known = card_rows.gate_states([card]) if states is None else states
    state = card.state if card.state != State.WAITING else known.get(card.pk, State.EXPIRED)
    return shapes.confirmation(card, title=card_rows.title_of(card.tool), state=state, now=timezone.now())


def _bare(problem: Problem) -> Problem:
    """The gate's refusal without what a tool may have written into it (CH-4)."""
    is_tools = isinstance(problem, Declared) or problem.code not in problems.CORE or problem.code == "validation_failed"
    reason = {} if is_tools or "reason" not in problem.context else {"reason": problem.context["reason"]}
    detail = f"{problem.kind.title}." if is_tools else problem.detail
    return Problem(problem.code, detail, kind=problem.kind, retry=problem.retry, headers=problem.headers, **reason)
