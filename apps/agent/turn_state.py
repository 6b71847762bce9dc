"""The moves of a turn (TU-1, TU-5): each one conditional UPDATE whose row count is checked, under the lock of the chat's row.

The order of locks is the same everywhere: the chat, then its turn. So a deletion waits for a write or is seen by it, and a send never
meets a half-ended turn. From the claim on a move names the attempt and its lease: a worker that was stopped past its lease, or whose turn
was ended by somebody else, writes nothing more.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from apps.agent import events, follow_ups, notices, writing
from apps.agent.models import Conversation, Message, Turn

State = Turn.State

# So long a transaction may stand still before the database ends it.
IDLE_SECONDS = 15


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """The one worker that runs the turn."""

    turn: UUID
    conversation: UUID
    number: int


class Lost(Exception):
    """The attempt runs no more: the turn was stopped or taken for lost, or its chat was deleted. Nothing was written."""


def lease() -> timedelta:
    return timedelta(seconds=getattr(settings, "AGENT_LEASE_SECONDS", 30))


@contextmanager
def brief_transaction() -> Iterator[None]:
    """One that holds a chat's row. A process that is paused in the middle of it loses it soon, and with it nobody's time but its own."""
    with transaction.atomic(durable=True):
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL idle_in_transaction_session_timeout = {IDLE_SECONDS * 1_000}")
        yield


def locked_chat(conversation: UUID, *, waits: bool = True) -> Conversation | None:
    """The chat's row, deleted or not, held to the end of the open transaction. None: there is none, or somebody else holds it."""
    rows = Conversation.objects.select_for_update(no_key=True, skip_locked=not waits)
    return rows.filter(pk=conversation).first()


# --- The worker's side ------------------------------------------------------------------------------------------------


def claim(uuid: UUID, *, at_once: int) -> Attempt | None:
    """Take the queued turn, once and for all; None for everybody else, and when it may not begin. Commits at once.

    `at_once`: how many turns of this person may run; with more of them this one ends with a notice.
    """
    conversation = Turn.objects.filter(pk=uuid, state=State.QUEUED).values_list("conversation_id", flat=True).first()
    if conversation is None:
        return None
    with brief_transaction():
        chat = locked_chat(conversation)
        queued = Turn.objects.filter(pk=uuid, state=State.QUEUED)
        if chat is None or chat.status == Conversation.Status.DELETED:
            _end(chat, queued, uuid, State.STOPPED, "chat_deleted")
            return None
        if _running_of(chat.user_id) >= at_once:
            _end(chat, queued, uuid, State.FAILED, "limit_turns_at_once", limit=at_once)
            return None
        times = {"started_at": timezone.now(), "lease_until": Now() + lease()}
        if not queued.update(state=State.RUNNING, attempt=F("attempt") + 1, **times):
            return None
        number = Turn.objects.values_list("attempt", flat=True).get(pk=uuid)
        events.turn_changed(conversation, uuid)
    return Attempt(turn=uuid, conversation=conversation, number=number)


def _running_of(person: Any) -> int:
    """Counted by one claim of a person at a time, so exactly."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"turns {person}"])
    return Turn.objects.filter(conversation__user=person, state=State.RUNNING, lease_until__gt=Now()).count()


def current(attempt: Attempt) -> QuerySet[Turn]:
    """The turn while this attempt of it runs, within its lease."""
    return Turn.objects.filter(pk=attempt.turn, state=State.RUNNING, attempt=attempt.number, lease_until__gt=Now())


def is_current(attempt: Attempt) -> bool:
    """Whether the attempt may still write: one query, without a lock."""
    open_chats = Conversation.objects.filter(pk=OuterRef("conversation")).exclude(status=Conversation.Status.DELETED)
    return current(attempt).filter(Exists(open_chats)).exists()


@contextmanager
def held(attempt: Attempt) -> Iterator[Conversation]:
    """A transaction in which the attempt writes: nobody stops the turn, takes it for lost or deletes the chat meanwhile. Raises Lost."""
    with brief_transaction():
        chat = locked_chat(attempt.conversation)
        if chat is None or chat.status == Conversation.Status.DELETED:
            raise Lost
        if current(attempt).select_for_update(no_key=True).first() is None:
            raise Lost
        yield chat


def renew(attempts: list[Attempt]) -> None:
    """Push the end of their leases; one that is over stays over."""
    for attempt in attempts:
        current(attempt).update(lease_until=Now() + lease())


def finish(attempt: Attempt, state: Turn.State, code: str = "", **values: object) -> None:
    """End the turn, with its notice unless it is done. Raises Lost."""
    with held(attempt) as chat:
        if not _end(chat, current(attempt), attempt.turn, state, code, **values):
            raise Lost


def let_go_of_deleted(attempt: Attempt) -> None:
    """End a turn whose chat was deleted under it; nothing for any other."""
    with brief_transaction():
        chat = locked_chat(attempt.conversation)
        if chat is None or chat.status == Conversation.Status.DELETED:
            _end(chat, current(attempt), attempt.turn, State.STOPPED, "chat_deleted")


# --- Everybody else's -------------------------------------------------------------------------------------------------


def stop(chat: Conversation, turn: Turn) -> bool:
    """The person's word: the turn of the locked chat ends here and now, whatever its worker is at. False: it had ended."""
    return _end(chat, _live(turn), turn.pk, State.STOPPED, "stopped")


def end_lost(chat: Conversation | None, turn: Turn) -> bool:
    """Write that the worker of the locked chat's turn is gone. False when it is not, or the turn has ended."""
    lost = _live(turn).filter(state=State.RUNNING, lease_until__lte=Now())
    if chat is None or chat.status == Conversation.Status.DELETED:
        return _end(chat, lost, turn.pk, State.STOPPED, "chat_deleted")
    return _end(chat, lost, turn.pk, State.INTERRUPTED, "interrupted")


def end_unclaimed(chat: Conversation | None, turn: Turn, *, queued_before: datetime) -> bool:
    """Write that no worker came. False when one did."""
    waiting = _live(turn).filter(state=State.QUEUED, created_at__lt=queued_before)
    return _end(chat, waiting, turn.pk, State.FAILED, "no_worker")


def end_here(attempt: Attempt) -> None:
    """This process goes away: the turn is interrupted at once, and nobody has to wait for its lease."""
    with brief_transaction():
        chat = locked_chat(attempt.conversation, waits=False)
        if chat is not None:
            _end(chat, current(attempt), attempt.turn, State.INTERRUPTED, "interrupted")


def _live(turn: Turn) -> QuerySet[Turn]:
    return Turn.objects.filter(pk=turn.pk, state__in=Turn.LIVE, attempt=turn.attempt)


def _end(
    chat: Conversation | None, moved: QuerySet[Turn], uuid: UUID, state: Turn.State, code: str, **values: object
) -> bool:
    """The one way in which a turn ends, in the open transaction: the move, drafts closed, the reason in the chat, what follows."""
    now = timezone.now()
    if not moved.update(state=state, code=code, ended_at=now, lease_until=None):
        return False
    if chat is None:
        return True
    _close_drafts(chat, uuid)
    if state != State.DONE:
        text = notices.text(code, **values)
        writing.append(chat.pk, role=Message.Role.NOTICE, now=now, content=text, code=code, turn_id=uuid)
    events.turn_changed(chat.pk, uuid)
    if state == State.DONE:
        follow_ups.after_turn(chat, Turn.objects.get(pk=uuid), now=now)
    return True


def _close_drafts(chat: Conversation, turn: UUID) -> None:
    for draft in Message.objects.filter(conversation=chat, turn=turn, live=True).order_by("number"):
        Message.objects.filter(pk=draft.pk).update(live=False, version=F("version") + 1)
        events.message_updated(chat.pk, draft.pk, version=draft.version + 1)
