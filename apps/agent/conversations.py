"""The one way to a chat and its messages (CH-1 to CH-4): every function acts for a live session, and answers what a client may have.

The first argument is the session's reference, which only the server may say (`sessions.reference`), and `impersonated` has no default.
Each raises Problem: `impersonated`, `unauthorized`, `forbidden`, `not_found`, in this order, before it reads or writes anything.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypedDict
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from apps.agent import access, events, listening, paging, refusals, shapes, writing
from apps.agent import search as searching
from apps.agent.access import Access
from apps.agent.listening import Receiver
from apps.agent.models import Conversation, Message
from apps.agent.models.conversation import Conversations
from apps.agent.shapes import ChatShape, MessageShape
from apps.api import strict_json

MOST_TITLE = 200
RESTORABLE = timedelta(hours=1)

_Status = Conversation.Status


class ChatPage(TypedDict):
    conversations: list[ChatShape]
    next_cursor: str | None


class WholeChat(ChatShape):
    messages: list[MessageShape]


def authorize_session(ref: object, *, impersonated: bool) -> UUID:
    """The person whose session may use the assistant now."""
    return access.authorize(ref, impersonated=impersonated).person


def create_conversation(ref: object, attrs: Mapping[str, Any] | None = None, *, impersonated: bool) -> ChatShape:
    """An empty, active chat of the session's person. Only a `title` is taken from `attrs`."""
    allowed = access.authorize(ref, impersonated=impersonated)
    title, now = (attrs or {}).get("title"), timezone.now()
    row = Conversation.objects.create(
        user_id=allowed.person,
        title="" if title is None else _checked_title(title),
        created_at=now,
        last_message_at=now,
    )
    return shapes.chat(row)


def list_conversations(
    ref: object, *, impersonated: bool, limit: int = paging.CHATS, cursor: str | None = None
) -> ChatPage:
    """The active ones, the newest last message first, at most 50. Raises `invalid_cursor` too."""
    allowed = access.authorize(ref, impersonated=impersonated)
    return _page(_own(allowed).filter(status=_Status.ACTIVE), limit=limit, cursor=cursor)


def search(
    ref: object, text: str, *, impersonated: bool, limit: int = paging.CHATS, cursor: str | None = None
) -> ChatPage:
    """Chats by their title and the person's own texts, archived ones too, in the order and the pages of the list."""
    allowed = access.authorize(ref, impersonated=impersonated)
    if len(text) > searching.MOST_CHARS:
        raise refusals.invalid("/q", f"At most {searching.MOST_CHARS} characters are searched for.")
    return _page(searching.matching(allowed.person, text), limit=limit, cursor=cursor)


def get_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> WholeChat:
    """The chat with all its messages, oldest first."""
    row = _chat(ref, conversation_uuid, impersonated=impersonated)
    messages = Message.objects.filter(conversation=row).defer("tool_result").order_by("number")
    return {**shapes.chat(row), "messages": [shapes.message(message) for message in messages.iterator()]}


def describe_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> ChatShape:
    """The chat without its messages."""
    return shapes.chat(_chat(ref, conversation_uuid, impersonated=impersonated))


def get_message(ref: object, conversation_uuid: object, message_uuid: object, *, impersonated: bool) -> MessageShape:
    """One message of the chat, which is what a listener of an event asks for."""
    row = _chat(ref, conversation_uuid, impersonated=impersonated)
    uuid = access.known(message_uuid)
    found = None if uuid is None else Message.objects.filter(conversation=row, pk=uuid).defer("tool_result").first()
    if found is None:
        raise refusals.not_found()
    return shapes.message(found)


def list_messages(
    ref: object,
    conversation_uuid: object,
    *,
    impersonated: bool,
    after: object = None,
    before: object = None,
    latest: bool = False,
    limit: int = paging.MESSAGES,
) -> list[MessageShape]:
    """A page of the chat, oldest first, at most 200: from the beginning, or by one of the three cursors. Raises `invalid_cursor` too."""
    row = _chat(ref, conversation_uuid, impersonated=impersonated)
    found = paging.messages(row, after=after, before=before, latest=latest, limit=limit)
    return [shapes.message(message) for message in found]


def add_message(
    ref: object, conversation_uuid: object, attrs: Mapping[str, Any], *, impersonated: bool
) -> MessageShape:
    """Store the person's text. Only `content` and the client's own `client_uuid` are taken from `attrs`: everything else is ignored.

    No turn answers it: that is `turns.send`. Raises `content_invalid` too.
    """
    allowed = access.authorize(ref, impersonated=impersonated)
    chat = access.own_chat(allowed, conversation_uuid)
    content = writing.checked_content(attrs.get("content"), max_chars=allowed.options.agent_history_chars)
    client_uuid = checked_client_uuid(attrs.get("client_uuid"))
    with transaction.atomic():
        written = writing.person_text(chat.pk, allowed.person, content, client_uuid=client_uuid, now=timezone.now())
    return shapes.message(written.message)


def rename_conversation(ref: object, conversation_uuid: object, title: object, *, impersonated: bool) -> ChatShape:
    """A title of 1 to 200 characters, else `validation_failed`."""
    allowed = access.authorize(ref, impersonated=impersonated)
    return _changed(_own(allowed), conversation_uuid, title=_checked_title(title))


def archive_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> ChatShape:
    """It leaves the list; nothing is deleted, and it can be opened and written to."""
    allowed = access.authorize(ref, impersonated=impersonated)
    return _changed(_own(allowed), conversation_uuid, status=_Status.ARCHIVED)


def unarchive_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> ChatShape:
    """Back into the list."""
    allowed = access.authorize(ref, impersonated=impersonated)
    return _changed(_own(allowed), conversation_uuid, status=_Status.ACTIVE)


def delete_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> ChatShape:
    """The row and its messages stay, but every function here takes the chat for gone, except that it can be restored for an hour."""
    allowed = access.authorize(ref, impersonated=impersonated)
    values = {"status": _Status.DELETED, "status_before": F("status"), "deleted_at": timezone.now()}
    return _changed(_own(allowed), conversation_uuid, **values)


def restore_conversation(ref: object, conversation_uuid: object, *, impersonated: bool) -> ChatShape:
    """What was deleted within the last hour is as it was before. The one function to which a deleted chat is not gone."""
    allowed = access.authorize(ref, impersonated=impersonated)
    since = timezone.now() - RESTORABLE
    rows = Conversation.objects.filter(user=allowed.person, status=_Status.DELETED, deleted_at__gt=since)
    return _changed(rows, conversation_uuid, status=F("status_before"), status_before="", deleted_at=None)


def subscribe(ref: object, conversation_uuid: object, *, impersonated: bool, receiver: Receiver | None = None) -> str:
    """The chat's topic, after the checks; a receiver in this process is told of its events from now on, once for each subscription."""
    found = topic(_chat(ref, conversation_uuid, impersonated=impersonated).pk)
    if receiver is not None:
        listening.add(found, receiver)
    return found


def unsubscribe(topic: str, receiver: Receiver) -> None:
    """The receiver is told nothing more. Needs no checks."""
    listening.remove(topic, receiver)


def topic(conversation_uuid: UUID) -> str:
    """Under which a chat's events are known."""
    return events.topic(conversation_uuid)


def checked_client_uuid(value: object) -> UUID | None:
    """The uuid that a client made for its message, or None without one."""
    uuid = access.known(value)
    if value is not None and uuid is None:
        raise refusals.invalid("/client_uuid", "This is no uuid.")
    return uuid


def _own(allowed: Access) -> Conversations:
    return Conversation.objects.of(allowed.person)


def _chat(ref: object, conversation_uuid: object, *, impersonated: bool) -> Conversation:
    return access.own_chat(access.authorize(ref, impersonated=impersonated), conversation_uuid)


def _changed(rows: Conversations, conversation_uuid: object, **values: Any) -> ChatShape:
    """One conditional UPDATE: what was deleted a moment ago is not brought back by it. The row is held until it is read."""
    uuid = access.known(conversation_uuid)
    with transaction.atomic():
        if uuid is None or not rows.filter(pk=uuid).update(**values):
            raise refusals.not_found()
        return shapes.chat(Conversation.objects.get(pk=uuid))


def _page(rows: Conversations, *, limit: int, cursor: str | None) -> ChatPage:
    found, next_cursor = paging.chats(rows, cursor=cursor, limit=limit)
    return {"conversations": [shapes.chat(row) for row in found], "next_cursor": next_cursor}


def _checked_title(title: object) -> str:
    """Without the blanks around it."""
    if not isinstance(title, str) or strict_json.check_value(title) is not None or not title.strip():
        raise refusals.invalid("/title", "A title is a text that is not blank.")
    if len(title) > MOST_TITLE:
        raise refusals.invalid("/title", f"A title has at most {MOST_TITLE} characters.")
    return title.strip()
