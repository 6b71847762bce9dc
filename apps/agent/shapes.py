"""What a client gets of chats, messages, turns and held writes (SPEC 26): in no door what a tool returned, nor its arguments (CH-4).

The one exception is the card of a held write, which shows its arguments and preview to its person.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, TypedDict
from uuid import UUID

from apps.agent.models import Card, Conversation, Message, Turn


class ChatShape(TypedDict):
    uuid: UUID
    title: str
    status: str
    message_count: int
    last_message_at: datetime
    created_at: datetime


class CallShape(TypedDict):
    id: str
    name: str


class SummaryShape(TypedDict):
    """What a client learns of a tool's result. `count`: how many things it found, where the result says so."""

    name: str | None
    outcome: str | None
    count: int | None
    truncated: bool


class MessageShape(TypedDict):
    uuid: UUID
    number: int
    version: int
    role: str
    content: str
    live: bool
    created_at: datetime
    tool_calls: list[CallShape]
    tool_result: None
    tool_summary: SummaryShape | None


class TurnShape(TypedDict):
    uuid: UUID
    state: str
    code: str | None
    started_at: datetime | None
    ended_at: datetime | None


class CardShape(TypedDict):
    uuid: UUID
    tool: str
    title: str
    arguments: Any
    preview: Any
    state: str
    expires_at: datetime
    expires_in_seconds: int


def chat(row: Conversation) -> ChatShape:
    return {
        "uuid": row.uuid,
        "title": row.title,
        "status": row.status,
        "message_count": row.message_count,
        "last_message_at": row.last_message_at,
        "created_at": row.created_at,
    }


def message(row: Message) -> MessageShape:
    """Built from what a client may have, so that a new field of the row stays inside until somebody opens it here."""
    is_tool, is_assistant = row.role == Message.Role.TOOL, row.role == Message.Role.ASSISTANT
    return {
        "uuid": row.uuid,
        "number": row.number,
        "version": row.version,
        "role": row.role,
        "content": "" if is_tool else row.content,
        "live": row.live,
        "created_at": row.created_at,
        "tool_calls": [_call(call) for call in row.tool_calls] if is_assistant else [],
        "tool_result": None,
        "tool_summary": _summary(row.tool_summary) if is_tool else None,
    }


def turn(row: Turn) -> TurnShape:
    return {
        "uuid": row.uuid,
        "state": row.state,
        "code": row.code or None,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }


def confirmation(row: Card, *, title: str, state: str, now: datetime) -> CardShape:
    """The held write as its person sees it. `title` is the tool's, `state` the true one of this moment."""
    left = int((row.expires_at - now).total_seconds()) if state == Card.State.WAITING else 0
    return {
        "uuid": row.uuid,
        "tool": row.tool,
        "title": title,
        "arguments": row.arguments,
        "preview": row.preview,
        "state": state,
        "expires_at": row.expires_at,
        "expires_in_seconds": max(0, left),
    }


def tool_summary(name: str, outcome: str, result: object, *, truncated: bool) -> SummaryShape:
    """What the turn loop stores beside a result, for the client. `truncated`: the model got a cut result."""
    return {"name": name, "outcome": outcome, "count": _count(result), "truncated": truncated}


def _count(result: object) -> int | None:
    """The length of the one list of the result; else its count or total; else nothing is known."""
    if not isinstance(result, Mapping):
        return None
    lists = [part for part in result.values() if isinstance(part, list)]
    if len(lists) == 1:
        return len(lists[0])
    return next((number for name in ("count", "total") if (number := _whole(result.get(name))) is not None), None)


def _call(stored: Any) -> CallShape:
    return {"id": _text(stored.get("id")) or "", "name": _text(stored.get("name")) or ""}


def _summary(stored: Any) -> SummaryShape:
    """Only the four facts, whatever else was stored beside them."""
    kept = stored if isinstance(stored, Mapping) else {}
    return {
        "name": _text(kept.get("name")),
        "outcome": _text(kept.get("outcome")),
        "count": _whole(kept.get("count")),
        "truncated": kept.get("truncated") is True,
    }


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
