"""What goes on by itself (TU-5): turns whose worker is gone are interrupted, those that nobody took are sent again or end, cards expire."""

from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.utils import timezone

from apps.agent import cards, deciding, follow_ups, turn_state
from apps.agent.models import Card, Turn
from apps.api import tasks
from apps.api.models import Confirmation
from apps.api.problems import Problem

log = structlog.get_logger(__name__)

State = Turn.State

SENT_AGAIN_AFTER = timedelta(seconds=30)
NO_WORKER_AFTER = timedelta(minutes=5)
_MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class Swept:
    """How many turns ended, were sent to a worker again, and how many cards came to their end."""

    turns_ended: int
    turns_sent: int
    cards_settled: int


def every() -> timedelta:
    """How often beat or the one process's timer sweeps."""
    return timedelta(seconds=getattr(settings, "AGENT_SWEEP_SECONDS", 10))


def sweep_turns(*, is_server: bool = False) -> Swept:
    """Write what time has done. Each row by itself: one that somebody holds waits for the next round.

    On SQLite only the server's own process has workers: any other one sends nothing.
    """
    now = timezone.now()
    lost = Turn.objects.filter(state=State.RUNNING, lease_until__lte=Now())
    late = Turn.objects.filter(state=State.QUEUED, created_at__lt=now - NO_WORKER_AFTER)
    can_send = is_server or connection.vendor != "sqlite"
    ended = sum(_ended(turn, now) for rows in (lost, late) for turn in rows.order_by("created_at", "pk")[:_MOST])
    sent = _send_again(now) if can_send else 0
    return Swept(turns_ended=ended, turns_sent=sent, cards_settled=_settle_cards(now))


def _ended(turn: Turn, now: datetime) -> bool:
    with turn_state.brief_transaction():
        chat = turn_state.locked_chat(turn.conversation_id, waits=False)
        if chat is None:
            return False
        if turn.state == State.RUNNING:
            return turn_state.end_lost(chat, turn)
        return turn_state.end_unclaimed(chat, turn, queued_before=now - NO_WORKER_AFTER)


def _send_again(now: datetime) -> int:
    """One conditional update for each, so that two sweeps send it once. A turn that is delivered twice runs once."""
    waiting = Q(sent_at=None) | Q(sent_at__lt=now - SENT_AGAIN_AFTER)
    found = Turn.objects.filter(waiting, state=State.QUEUED).order_by("created_at", "pk")
    sent = 0
    for uuid in found.values_list("pk", flat=True)[:_MOST]:
        if Turn.objects.filter(waiting, pk=uuid, state=State.QUEUED).update(sent_at=now):
            tasks.send(follow_ups.RUN, str(uuid))
            sent += 1
    return sent


def _settle_cards(now: datetime) -> int:
    """Those past their time, and those whose decision nobody wrote down."""
    decided = Confirmation.objects.filter(pk=OuterRef("uuid")).exclude(state=Confirmation.State.WAITING)
    due = Q(expires_at__lte=now) | Exists(decided)
    found = Card.objects.select_related("turn", "message").filter(due, state=Card.State.WAITING)
    return sum(_settled(card) for card in found.order_by("created_at", "pk")[:_MOST])


def _settled(card: Card) -> bool:
    try:
        with deciding.alone(card.pk, wait_seconds=0):
            return cards.settle(card)
    except Problem:
        # Its person decides it at this moment.
        return False
