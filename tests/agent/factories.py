"""People who may use the assistant, and rows of chats, turns and cards, for the tests of the assistant."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.test import Client
from django.utils import timezone

from apps.accounts.models import LiveSession, User
from apps.agent import access
from apps.agent.models import Card, Conversation, Message, Turn
from tests.api import person
from tests.api.person import Person

CATALOGUE = ("catalogue.view_product", "catalogue.change_product")


def make_person(*, permissions: Iterable[str] = (), **fields: Any) -> Person:
    """A person in a live session who may use the assistant, and what else is granted."""
    return person.make_person(permissions=[access.PERMISSION, *permissions], **fields)


def make_chat(owner: User, **fields: Any) -> Conversation:
    """An empty, active chat that began now, unless the fields say otherwise."""
    now = fields.pop("created_at", None) or timezone.now()
    values: dict[str, Any] = {"created_at": now, "last_message_at": now, **fields}
    if values.get("status") == Conversation.Status.DELETED:
        values = {"deleted_at": now, "status_before": Conversation.Status.ACTIVE, **values}
    return Conversation.objects.create(user=owner, **values)


def make_message(chat: Conversation, content: str = "Hello.", *, role: str = "user", **fields: Any) -> Message:
    """The next line of the chat, as if it had been stored there."""
    now = fields.pop("created_at", None) or timezone.now()
    chat.message_count += 1
    chat.last_message_at = now
    chat.save(update_fields=["message_count", "last_message_at"])
    return Message.objects.create(
        conversation=chat, number=chat.message_count, role=role, content=content, created_at=now, **fields
    )


def make_tool_message(chat: Conversation, *, result: object, **fields: Any) -> Message:
    """A tool's message with a result that no client may see."""
    summary = {"name": "catalogue.list_products", "outcome": "ok", "count": 1, "truncated": False}
    values = {"tool_call_id": "call-1", "tool_result": result, "tool_summary": summary, **fields}
    return make_message(chat, "", role=Message.Role.TOOL, **values)


def make_messages(chat: Conversation, count: int) -> list[Message]:
    """So many texts of the person, quickly."""
    now, first = timezone.now(), chat.message_count + 1
    rows = [
        Message(conversation=chat, number=number, role=Message.Role.USER, content=f"Text {number}.", created_at=now)
        for number in range(first, first + count)
    ]
    made = Message.objects.bulk_create(rows, batch_size=500)
    chat.message_count, chat.last_message_at = first + count - 1, now
    chat.save(update_fields=["message_count", "last_message_at"])
    return made


def make_turn(chat: Conversation, session: LiveSession | UUID, **fields: Any) -> Turn:
    """A queued turn that acts for the session."""
    now = timezone.now()
    session_uuid = session if isinstance(session, UUID) else session.pk
    values: dict[str, Any] = {"created_at": now, "state": Turn.State.QUEUED, **fields}
    if values["state"] not in Turn.LIVE:
        values = {"ended_at": now, **values}
    return Turn.objects.create(conversation=chat, session_uuid=session_uuid, **values)


def make_card(message: Message, *, arguments: Mapping[str, Any] | None = None, **fields: Any) -> Card:
    """A proposed write that waits for its person. No row of the gate stands behind it."""
    now: datetime = timezone.now()
    values: dict[str, Any] = {
        "uuid": uuid4(),
        "tool": "catalogue.adjust_stock",
        "arguments": arguments or {"changes": [{"sku": "BED-0002", "delta": 2}]},
        "preview": {"summary": "Adjust the stock of 1 product.", "rows": [], "more": 0, "totals": {}},
        "created_at": now,
        "expires_at": now + timedelta(minutes=15),
        **fields,
    }
    return Card.objects.create(conversation=message.conversation, message=message, turn=message.turn, **values)


def sign_in(user: User, **options: Any) -> Client:
    """A browser of the person, signed in, with a live session of its own."""
    client = Client(**options)
    client.force_login(user)
    return client
