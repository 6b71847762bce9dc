"""Storing a line of a chat, inside the caller's transaction (CH-3): its number, the chat's count, time and title, and the event.

The number comes from the chat's own UPDATE, which holds the row to the end of the transaction: whoever is numbered later commits later.
`person_text` is for what a person wrote, `append` for the turn loop, which alone writes everything else.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from apps.agent import events, refusals
from apps.agent.models import Conversation, Message, Turn
from apps.api import strict_json

TITLE_FROM_TEXT = 60


@dataclass(frozen=True, kw_only=True)
class Written:
    """`is_new` is False for a second send of the same message: `message` is then the first, and nothing was stored."""

    message: Message
    is_new: bool


def checked_content(content: object, *, max_chars: int) -> str:
    """A person's text as it may be stored, unchanged. Raises Problem `content_invalid`."""
    if not isinstance(content, str) or strict_json.check_value(content) is not None:
        raise refusals.content_invalid("unreadable", "The text is none, or holds characters that are not kept.")
    if not content.strip():
        raise refusals.content_invalid("blank", "The text is blank.")
    if len(content) > max_chars:
        detail = f"The text has more than {max_chars} characters."
        raise refusals.content_invalid("too_long", detail, max_chars=max_chars)
    return content


def person_text(
    conversation: UUID,
    owner: UUID,
    content: str,
    *,
    client_uuid: UUID | None,
    now: datetime,
    turn: Turn | None = None,
) -> Written:
    """Store the owner's checked text in their chat. Raises Problem `not_found` for a chat that is not theirs or is deleted."""
    if Conversation.objects.of(owner).select_for_update(no_key=True).filter(pk=conversation).first() is None:
        raise refusals.not_found()
    first = None if client_uuid is None else _sent(conversation, client_uuid)
    if first is not None:
        return Written(message=first, is_new=False)
    title = content.strip()[:TITLE_FROM_TEXT].rstrip()
    message = _append(
        conversation,
        title=title,
        role=Message.Role.USER,
        content=content,
        client_uuid=client_uuid,
        turn=turn,
        created_at=now,
    )
    assert message is not None  # noqa: S101 - its row is locked, and was not deleted
    return Written(message=message, is_new=True)


def append(
    conversation: UUID, *, role: Message.Role, now: datetime, content: str = "", **fields: Any
) -> Message | None:
    """Store a line that the turn loop writes; None when the chat is deleted or gone, and nothing was stored. Archived chats go on."""
    return _append(conversation, title="", role=role, content=storable(content), created_at=now, **fields)


def storable(text: str) -> str:
    """A model's text without what the database can't keep or JSON can't carry."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def _sent(conversation: UUID, client_uuid: UUID) -> Message | None:
    return Message.objects.filter(conversation=conversation, client_uuid=client_uuid).first()


def _append(conversation: UUID, *, title: str, created_at: datetime, **fields: Any) -> Message | None:
    number = _next_number(conversation, title=title, now=created_at)
    if number is None:
        return None
    message = Message.objects.create(conversation_id=conversation, number=number, created_at=created_at, **fields)
    events.message_added(conversation, message.pk)
    return message


def _next_number(conversation: UUID, *, title: str, now: datetime) -> int | None:
    """One conditional UPDATE. The time never goes back, whoever's clock is late."""
    if not connection.in_atomic_block:
        raise RuntimeError("A line and its number are stored in one transaction.")
    moment = connection.ops.adapt_datetimefield_value(now)
    key = Conversation._meta.pk.get_db_prep_value(conversation, connection)
    table = connection.ops.quote_name(Conversation._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {table} SET message_count = message_count + 1,"  # noqa: S608 - the model's own name
            " last_message_at = CASE WHEN last_message_at < %s THEN %s ELSE last_message_at END,"
            " title = CASE WHEN title = '' THEN %s ELSE title END"
            " WHERE uuid = %s AND status <> 'deleted' RETURNING message_count",
            [moment, moment, title, key],
        )
        rows = cursor.fetchall()
    return rows[0][0] if rows else None
