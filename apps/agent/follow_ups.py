"""New turns of a chat, and the one that tells the model what became of its cards (TU-3).

Everything here runs in the caller's transaction, which holds the chat's row.
"""

from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef

from apps.agent import events
from apps.agent.models import Card, Conversation, Turn
from apps.api import tasks

# Of a decided card a person wants to hear more; one that only ran out starts nothing by itself.
_DECIDED = (Card.State.USED, Card.State.REJECTED)
_COUNTED = ("rounds", "calls", "tokens", "cost")

RUN = "run_turn"


def queue(
    chat: Conversation, *, session: UUID, context: dict[str, Any], now: datetime, follows: Turn | None = None
) -> Turn | None:
    """A new turn, sent to a worker at the commit; None while another one is live. A follow-up goes on counting."""
    if live(chat.pk) is not None:
        return None
    counted = {} if follows is None else {name: getattr(follows, name) for name in _COUNTED}
    turn = Turn.objects.create(
        conversation=chat,
        session_uuid=session,
        follows=follows,
        request_context=context,
        created_at=now,
        sent_at=now,
        **counted,
    )
    events.turn_changed(chat.pk, turn.pk)
    transaction.on_commit(partial(tasks.send, RUN, str(turn.pk)), robust=True)
    return turn


def live(conversation: UUID) -> Turn | None:
    """The chat's turn that has not ended."""
    return Turn.objects.filter(conversation=conversation, state__in=Turn.LIVE).first()


def after_turn(chat: Conversation, turn: Turn, *, now: datetime) -> Turn | None:
    """A card was decided while the model gave its last answer: it hears of it now."""
    return after_decision(chat, session=turn.session_uuid, context=turn.request_context, now=now)


def after_decision(chat: Conversation, *, session: UUID, context: dict[str, Any], now: datetime) -> Turn | None:
    """The turn that tells the model, once none of the cards of theirs waits; None when there is nothing to tell, or a turn is live."""
    if chat.status == Conversation.Status.DELETED:
        return None
    waiting = Card.objects.filter(turn=OuterRef("turn"), state=Card.State.WAITING)
    untold = Card.objects.filter(conversation=chat, told_in=None, state__in=_DECIDED)
    card = untold.exclude(Exists(waiting)).select_related("turn").order_by("-created_at", "pk").first()
    if card is None:
        return None
    return queue(chat, session=session, context=context, now=now, follows=card.turn)
