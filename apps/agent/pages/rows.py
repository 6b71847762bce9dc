"""What the chat's templates show: shapes of a client's message with its words, its tool's title and the cards that stand below it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.safestring import SafeString
from django.utils.translation import gettext, ngettext

from apps.agent import notices
from apps.agent.pages import markdown
from apps.agent.shapes import CardShape, MessageShape, TurnShape
from apps.api import registry
from apps.api.pages.problems import MEANINGS

# Ends of a turn after which the same text may be sent again by a button.
_AGAIN = ("failed", "stopped", "interrupted")

# What the gate calls an answer that is no refusal; empty where nothing is known.
_GOOD = ("ok", "preview", "")


@dataclass(frozen=True, kw_only=True)
class CardRow:
    """A proposed write. `is_shown`: the person may see the tool now; else neither arguments nor preview are here."""

    uuid: UUID
    title: str
    state: str
    code: str
    why: str
    preview: Any
    arguments: str
    expires_at: datetime
    clock: str
    replaced_by: UUID | None
    is_shown: bool


@dataclass(frozen=True, kw_only=True)
class Row:
    """One message. Of its texts only that of its role is filled."""

    uuid: UUID
    number: int
    version: int
    role: str
    live: bool
    content: str = ""
    can_copy: bool = False
    html: SafeString | str = ""
    notice: str = ""
    tool_title: str = ""
    told: str = ""
    is_held: bool = False
    is_refused: bool = False
    cards: tuple[CardRow, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TurnRow:
    """How the chat's last turn stands."""

    state: str = ""
    told: str = ""
    is_live: bool = False
    can_retry: bool = False


def rows(messages: Iterable[MessageShape], cards: Mapping[UUID, tuple[CardRow, ...]]) -> list[Row]:
    """The messages in their order. `cards` are by message: what stands below it."""
    return [_row(one, cards.get(one["uuid"], ())) for one in messages]


def turn(found: TurnShape | None) -> TurnRow:
    """The line below the messages."""
    if found is None:
        return TurnRow()
    state = found["state"]
    if state in ("queued", "running"):
        told = (
            gettext("The assistant is about to answer …")
            if state == "queued"
            else gettext("The assistant is answering …")
        )
        return TurnRow(state=state, told=told, is_live=True)
    return TurnRow(state=state, told=_ended(state), can_retry=state in _AGAIN)


def card(shape: CardShape, *, code: str, replaced_by: UUID | None, is_shown: bool) -> CardRow:
    """A card as its template draws it."""
    left = shape["expires_in_seconds"]
    return CardRow(
        uuid=shape["uuid"],
        title=shape["title"],
        state=shape["state"],
        code=code,
        why=str(MEANINGS.get(code, "")) if code else "",
        preview=shape["preview"] if is_shown else None,
        arguments=json.dumps(shape["arguments"], indent=2, ensure_ascii=False) if is_shown else "",
        expires_at=shape["expires_at"],
        clock=f"{left // 60}:{left % 60:02d}",
        replaced_by=replaced_by,
        is_shown=is_shown,
    )


def _row(message: MessageShape, cards: tuple[CardRow, ...]) -> Row:
    role = message["role"]
    words: dict[str, Any] = {}
    match role:
        case "assistant":
            is_last = bool(message["content"]) and not message["live"] and not message["tool_calls"]
            html = markdown.render(message["content"])
            words = {"content": message["content"], "html": html, "can_copy": is_last}
        case "tool":
            words = {**_tool(message), "cards": cards}
        case "notice":
            words = {"notice": notices.shown(message["content"])}
        case _:
            words = {"content": message["content"]}
    return Row(
        uuid=message["uuid"],
        number=message["number"],
        version=message["version"],
        role=role,
        live=message["live"],
        **words,
    )


def _tool(message: MessageShape) -> dict[str, Any]:
    summary = message["tool_summary"]
    name = (summary and summary["name"]) or ""
    outcome = (summary and summary["outcome"]) or ""
    is_held = outcome == "confirmation_required"
    is_refused = outcome not in _GOOD and not is_held
    return {
        "tool_title": _title(name),
        "is_held": is_held,
        "is_refused": is_refused,
        "told": _told(message, outcome, is_held=is_held, is_refused=is_refused),
    }


def _told(message: MessageShape, outcome: str, *, is_held: bool, is_refused: bool) -> str:
    summary = message["tool_summary"]
    if is_held:
        return gettext("proposed, nothing has changed yet")
    if is_refused:
        return str(MEANINGS.get(outcome, outcome.replace("_", " ")))
    count = summary["count"] if summary else None
    found = "" if count is None else ngettext("%(count)d result", "%(count)d results", count) % {"count": count}
    if summary and summary["truncated"]:
        cut = gettext("the assistant got the beginning only")
        return f"{found}, {cut}" if found else cut
    return found


def _title(name: str) -> str:
    current = registry.current()
    tool = current.find("admin", current.canonical("admin", name)) if name else None
    return name if tool is None else str(tool.title)


def _ended(state: str) -> str:
    match state:
        case "failed":
            return gettext("This answer ended early. The reason stands above.")
        case "stopped":
            return gettext("Stopped.")
        case "interrupted":
            return gettext("This answer was interrupted.")
        case _:
            return ""
