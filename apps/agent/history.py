"""What a model is sent of a chat: well formed whatever is stored (TU-2).

It begins with a person's text and ends with one or with results. Each call of an answer has its one result right behind it, in the order
of the calls, also where a card was decided in between; a call whose turn ended before its result came is closed as interrupted. A window
is cut only before a person's message.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol
from uuid import UUID

from apps.agent import notices, results
from apps.agent.models import Message
from apps.agent.providers.protocol import Line, Proposed, Resulted, Said, ToolCall

Role = Message.Role

# How the server's own lines begin. What a person pastes may come from a stranger who wants to be taken for it.
_SERVER = re.compile(r"\(\s*server\s*:", re.IGNORECASE)

_AT_A_TIME = 200
_NO_TEXT = "(no text)"
_GO_ON = "(Server: your answer ended here. What came before it, and what the person decided, may be new to you: go on.)"
_COLUMNS = ("number", "role", "content", "code", "tool_calls", "tool_call_id", "tool_result")


class Row(Protocol):
    """What is read of a message."""

    number: int
    role: str
    content: str
    code: str
    tool_calls: Any
    tool_call_id: str
    tool_result: Any


@dataclass(frozen=True, kw_only=True)
class History:
    """`is_cut`: something was left out to stay within the limit. `upto`: the number of the last message in it."""

    lines: tuple[Line, ...]
    is_cut: bool = False
    upto: int = 0


class TooLong(Exception):
    """Not even the last person's text with what followed fits."""


def of(conversation: UUID, *, most_chars: int) -> History:
    """The end of the chat, as much of it as fits. Raises TooLong."""
    return build(_newest(conversation, most_chars), most_chars=most_chars)


def _newest(conversation: UUID, most_chars: int) -> list[Row]:
    """The messages back to a person's one with which the limit is passed: what is older could not be shown anyhow."""
    rows: list[Row] = []
    chars = 0
    messages = Message.objects.filter(conversation=conversation).order_by("-number").only("uuid", *_COLUMNS)
    for row in messages.iterator(chunk_size=_AT_A_TIME):
        rows.append(row)
        chars += _size(row)
        if chars > most_chars and row.role == Role.USER:
            break
    return rows[::-1]


def build(rows: Sequence[Row], *, most_chars: int) -> History:
    """The history of these messages, oldest first. Raises TooLong."""
    segments = _segments(rows)
    if not segments:
        return History(lines=())
    kept, chars = [segments[-1]], _chars(segments[-1])
    for segment in reversed(segments[:-1]):
        chars += _chars(segment)
        if chars > most_chars:
            break
        kept.insert(0, segment)
    is_cut = len(kept) < len(segments) or rows[0].number > 1
    if len(kept) == 1 and _chars(kept[0]) > most_chars:
        kept, is_cut = [_shortened(kept[0], most_chars)], True
    lines = _merged(line for segment in kept for line in segment)
    return History(lines=tuple(lines), is_cut=is_cut, upto=rows[-1].number)


def _segments(rows: Sequence[Row]) -> list[list[Line]]:
    """A person's text and all that followed it, for each of them. What stands before the first one is nobody's answer."""
    found: list[list[Row]] = []
    for row in rows:
        if row.role == Role.USER:
            found.append([])
        if found:
            found[-1].append(row)
    taken: set[str] = set()
    return [_lines(segment, taken) for segment in found]


@dataclass
class _Asked:
    """An answer with calls, and the results that were found for it so far."""

    text: str
    calls: list[ToolCall]
    # By the stored id.
    slots: dict[str, ToolCall]
    results: dict[str, Resulted] = field(default_factory=dict)

    def flat(self) -> list[Line]:
        closed = [self.results.get(call.id) or _interrupted(call) for call in self.calls]
        return [Proposed(text=self.text, calls=tuple(self.calls)), *closed]


def _lines(rows: Iterable[Row], taken: set[str]) -> list[Line]:
    blocks: list[_Asked | Line] = []
    open_calls: dict[str, _Asked] = {}
    for row in rows:
        if row.role == Role.TOOL:
            _answer(open_calls, row)
        elif row.role == Role.ASSISTANT:
            slots = _calls(row, taken)
            if slots:
                asked = _Asked(text=row.content, calls=list(slots.values()), slots=slots)
                open_calls.update(dict.fromkeys(slots, asked))
                blocks.append(asked)
            elif row.content:
                blocks.append(Proposed(text=row.content))
        elif (text := _said(row)) is not None:
            blocks.append(Said(text=text))
    return [line for block in blocks for line in (block.flat() if isinstance(block, _Asked) else [block])]


def _calls(row: Row, taken: set[str]) -> dict[str, ToolCall]:
    """The calls of an answer by their stored ids; no id stands twice in one history."""
    found: dict[str, ToolCall] = {}
    for stored in row.tool_calls if isinstance(row.tool_calls, list) else []:
        if not isinstance(stored, dict):
            continue
        key, name, arguments = (stored.get(part) for part in ("id", "name", "arguments"))
        if not (isinstance(key, str) and isinstance(name, str) and key and name) or key in found:
            continue
        known, number = key, 1
        while known in taken:
            number += 1
            known = f"{key}_{number}"
        taken.add(known)
        found[key] = ToolCall(id=known, name=name, arguments=arguments if isinstance(arguments, str) else "{}")
    return found


def _answer(open_calls: dict[str, _Asked], row: Row) -> None:
    """Put the result to its call; one that nobody asked for, or that comes twice, is left out."""
    asked = open_calls.pop(row.tool_call_id, None)
    if asked is None:
        return
    call = asked.slots[row.tool_call_id]
    told = row.tool_result.get("text") if isinstance(row.tool_result, dict) else None
    text = told if isinstance(told, str) and told else results.INTERRUPTED
    asked.results[call.id] = Resulted(call_id=call.id, name=call.name, text=text)


def _interrupted(call: ToolCall) -> Resulted:
    return Resulted(call_id=call.id, name=call.name, text=results.INTERRUPTED)


def _said(row: Row) -> str | None:
    """A person's text, or what the model is told of a notice."""
    if row.role == Role.USER:
        return _SERVER.sub("(not the server:", row.content) or _NO_TEXT
    told = row.tool_result.get("text") if isinstance(row.tool_result, dict) else None
    if isinstance(told, str) and told:
        return told
    return notices.told(row.code)


def _shortened(lines: list[Line], most_chars: int) -> list[Line]:
    """With as many of the oldest results left out as it takes. Raises TooLong."""
    over, found = _chars(lines) - most_chars, list(lines)
    for index, line in enumerate(lines):
        if over > 0 and isinstance(line, Resulted) and len(line.text) > len(results.LEFT_OUT):
            found[index] = replace(line, text=results.LEFT_OUT)
            over -= len(line.text) - len(results.LEFT_OUT)
    if over > 0:
        raise TooLong
    return found


def _merged(lines: Iterable[Line]) -> list[Line]:
    """Nobody speaks twice in a row, and the model is not the last who spoke."""
    found: list[Line] = []
    for line in lines:
        last = found[-1] if found else None
        if isinstance(line, Said) and isinstance(last, Said):
            found[-1] = Said(text=f"{last.text}\n\n{line.text}")
        elif isinstance(line, Proposed) and isinstance(last, Proposed):
            found[-1] = replace(line, text=f"{last.text}\n\n{line.text}".strip())
        else:
            found.append(line)
    if found and isinstance(found[-1], Proposed):
        found.append(Said(text=_GO_ON))
    return found


def _chars(lines: Iterable[Line]) -> int:
    return sum(_line_chars(line) for line in lines)


def _line_chars(line: Line) -> int:
    if isinstance(line, Proposed):
        return len(line.text) + sum(len(call.name) + len(call.arguments) for call in line.calls)
    return len(line.text)


def _size(row: Row) -> int:
    """About as `_chars` will count it."""
    told = row.tool_result.get("text") if isinstance(row.tool_result, dict) else None
    calls = row.tool_calls if isinstance(row.tool_calls, list) else []
    arguments = sum(len(str(call.get("arguments", ""))) for call in calls if isinstance(call, dict))
    return len(row.content) + (len(told) if isinstance(told, str) else 0) + arguments
