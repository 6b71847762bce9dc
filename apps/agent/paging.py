"""Pages of a person's chats, and of a chat's messages: steady while others write, and found by an index."""

import base64
import binascii
import json
from datetime import UTC, datetime
from uuid import UUID

from django.db.models import Q

from apps.agent import access, refusals
from apps.agent.models import Conversation, Message
from apps.agent.models.conversation import Conversations

MOST_CHATS, CHATS = 50, 20
MOST_MESSAGES, MESSAGES = 200, 50


def chats(rows: Conversations, *, cursor: str | None, limit: int) -> tuple[list[Conversation], str | None]:
    """The newest first, after the cursor, and the cursor of the next page, if there is one. Raises `invalid_cursor`."""
    rows = rows.order_by("-last_message_at", "-uuid")
    if cursor is not None:
        at, uuid = _position(cursor)
        # The first condition is what an index can seek by.
        rows = rows.filter(Q(last_message_at__lt=at) | Q(uuid__lt=uuid), last_message_at__lte=at)
    wanted = _within(limit, MOST_CHATS)
    found = list(rows[: wanted + 1])
    return found[:wanted], _cursor_of(found[wanted - 1]) if len(found) > wanted else None


def messages(
    chat: Conversation, *, after: object = None, before: object = None, latest: bool = False, limit: int
) -> list[Message]:
    """At most `limit` of the chat, oldest first: after or before one of them, the latest, or from the beginning.

    Raises `invalid_cursor` for two cursors at once, and for one that is no message of this chat.
    """
    if sum((after is not None, before is not None, latest)) > 1:
        raise refusals.invalid_cursor()
    # What a tool returned does not even leave the database.
    rows = Message.objects.filter(conversation=chat).defer("tool_result")
    wanted = _within(limit, MOST_MESSAGES)
    if after is not None:
        return list(rows.filter(number__gt=_number(chat, after)).order_by("number")[:wanted])
    if before is not None:
        rows = rows.filter(number__lt=_number(chat, before))
    elif not latest:
        return list(rows.order_by("number")[:wanted])
    return list(reversed(rows.order_by("-number")[:wanted]))


def _number(chat: Conversation, message_uuid: object) -> int:
    uuid = access.known(message_uuid)
    rows = Message.objects.filter(conversation=chat, pk=uuid) if uuid else Message.objects.none()
    number = rows.order_by("pk").values_list("number", flat=True).first()
    if number is None:
        raise refusals.invalid_cursor()
    return number


def _within(limit: int, most: int) -> int:
    """Who asks for more than a page holds gets a page."""
    return min(max(limit, 1), most)


def _cursor_of(chat: Conversation) -> str:
    text = json.dumps([chat.last_message_at.isoformat(), str(chat.pk)])
    return base64.urlsafe_b64encode(text.encode()).decode()


def _position(cursor: object) -> tuple[datetime, UUID]:
    """Where the page before ended. Whatever was not made by `_cursor_of` is no cursor."""
    try:
        text = base64.b64decode(str(cursor).encode(), altchars=b"-_", validate=True)
        moment, uuid = json.loads(text)
        at, known = datetime.fromisoformat(moment), UUID(uuid)
        if at.tzinfo is None:
            raise refusals.invalid_cursor()
        return at.astimezone(UTC), known
    except (binascii.Error, TypeError, AttributeError, ValueError, OverflowError, RecursionError):
        raise refusals.invalid_cursor() from None
