"""Deleted chats are gone for good after `agent_purge_deleted_after_days`; 0, the default: never (CH-2).

What the calls of their models took stays in the journal, so that its sums stay true.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from apps.agent import options
from apps.agent.models import Card, Conversation, Message, ModelCall, Turn

EVERY = timedelta(hours=1)
_MOST = 1_000


@dataclass(frozen=True, kw_only=True)
class Purged:
    """How many chats are gone with all that hung on them."""

    chats_purged: int


def every() -> timedelta:
    """How often beat or the one process's timer looks."""
    return EVERY


def purge_deleted(*, is_server: bool = False) -> Purged:
    """One transaction for each chat, the longest deleted first; the next round takes what is left. Two rounds at once share the work."""
    days = options.current().agent_purge_deleted_after_days
    if not days:
        return Purged(chats_purged=0)
    before = timezone.now() - timedelta(days=days)
    found = Conversation.objects.filter(status=Conversation.Status.DELETED, deleted_at__lt=before)
    uuids = found.order_by("deleted_at", "pk").values_list("pk", flat=True)[:_MOST]
    return Purged(chats_purged=sum(_purged(uuid, before) for uuid in list(uuids)))


def _purged(uuid: UUID, before: datetime) -> bool:
    """Whether it went here: not when somebody restored it, or holds it, meanwhile."""
    deleted = Conversation.objects.filter(pk=uuid, status=Conversation.Status.DELETED, deleted_at__lt=before)
    with transaction.atomic():
        if deleted.select_for_update(skip_locked=True).first() is None:
            return False
        ModelCall.objects.filter(turn__conversation=uuid).update(turn=None)
        # By statements: Django's own cascade would first load every message of the chat.
        for model in (Card, Message, Turn):
            rows = model._default_manager.filter(conversation=uuid)
            rows._raw_delete(rows.db)
        deleted._raw_delete(deleted.db)
        return True
