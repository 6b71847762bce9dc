"""The demo model's side of a conversation: a call, what came of it, and words about it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.agent.demo import commands, filling, telling, wording
from apps.agent.providers.protocol import Ask, Line, Piece, Proposed, Resulted, Said, Text, ToolCall, ToolOffer, Usage

# So that a person sees it stream.
PIECE_SECONDS = 0.02
_PIECE = re.compile(r"\s*\S+\s*")
_MOST_CALLS = 8


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What is said, and which tools are asked for."""

    text: str = ""
    calls: Sequence[ToolCall] = ()


class DemoModel:
    """Implements `providers.protocol.Model`. It keeps nothing: the same history gets the same answer."""

    provider, model = "demo", "demo"

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Stream the reply."""
        found = reply(ask)
        for piece in _PIECE.findall(found.text):
            yield Text(text=piece)
            await asyncio.sleep(PIECE_SECONDS)
        for call in found.calls:
            yield call
        yield Usage(input_tokens=0, output_tokens=0)

    async def close(self) -> None:
        """It holds nothing."""


def reply(ask: Ask) -> Reply:
    """The whole answer to the history so far."""
    text, since = _question(ask.history)
    results = _results(since)
    if not results:
        decided = telling.decisions(text)
        return Reply(text=decided) if decided else _first(telling.own_words(text), ask.tools, number=len(ask.history))
    text = telling.own_words(text)
    tool = None if commands.is_command(text) else wording.find(text, ask.tools)
    if tool is not None and tool.is_write and not _was_called(since, tool):
        follow = _after_reading(text, tool, results, number=len(ask.history))
        if follow is not None:
            return follow
    return Reply(text="\n\n".join(telling.result(value, tool=name) for name, _, value in results))


def _question(history: Sequence[Line]) -> tuple[str, Sequence[Line]]:
    """The person's last text, and what came after it."""
    for index in range(len(history) - 1, -1, -1):
        line = history[index]
        if isinstance(line, Said):
            return line.text, history[index + 1 :]
    return "", history


def _first(text: str, tools: Sequence[ToolOffer], *, number: int) -> Reply:
    if commands.is_command(text):
        return _by_hand(text, tools, number=number)
    tool = _looked_at(text, tools) or wording.find(text, tools)
    if tool is None:
        return Reply(text=telling.help_text(tools))
    filled = filling.fill(text, tool, {})
    if filled.relative is not None:
        return _read_first(text, tool, tools, number=number)
    if filled.missing:
        return Reply(text=telling.missing(tool, filled.missing))
    return Reply(text=_announced(tool), calls=[_call(tool, filled.arguments, number=number)])


def _looked_at(text: str, tools: Sequence[ToolOffer]) -> ToolOffer | None:
    """A question that names one thing is about that thing."""
    if wording.wants_change(text):
        return None
    keyed = ((tool, filling.key_of(tool.schema)) for tool in tools if not tool.is_write)
    asking = (tool for tool, key in keyed if key and list(tool.schema.get("required", ())) == [key[0]])
    return next((tool for tool in asking if len(filling.identifiers(text, tool.schema)) == 1), None)


def _by_hand(text: str, tools: Sequence[ToolOffer], *, number: int) -> Reply:
    try:
        command = commands.read(text, tools)
    except commands.NotUnderstood as problem:
        return Reply(text=f"{problem}\n\n{telling.help_text(tools)}")
    return Reply(calls=[_call(command.tool, command.arguments, number=number)])


def _read_first(text: str, tool: ToolOffer, tools: Sequence[ToolOffer], *, number: int) -> Reply:
    """The present values, by a read that takes what the write names its rows by."""
    rows = filling.row_field(tool)
    schema: Mapping[str, Any] = tool.schema if rows is None else rows[1]["items"]
    key = filling.key_of(schema)
    read = None if key is None else _reader(key[0], tools)
    named = filling.identifiers(text, schema)
    if key is None or read is None or not named:
        return Reply(text=telling.missing(tool, [key[0]] if key else list(schema.get("required", ()))))
    calls = [_call(read, {key[0]: one}, number=number, part=part) for part, one in enumerate(named[:_MOST_CALLS])]
    return Reply(text="Let me look at what it is now.", calls=calls)


def _reader(key: str, tools: Sequence[ToolOffer]) -> ToolOffer | None:
    """The read that asks for nothing but that."""
    return next((tool for tool in tools if not tool.is_write and list(tool.schema.get("required", ())) == [key]), None)


def _after_reading(
    text: str, tool: ToolOffer, results: Sequence[tuple[str, Mapping[str, Any], Any]], *, number: int
) -> Reply | None:
    known = {str(next(iter(given.values()), "")): telling.present_values(value) for _, given, value in results}
    filled = filling.fill(text, tool, known)
    if filled.missing or filled.relative is not None:
        return None
    return Reply(text=_announced(tool), calls=[_call(tool, filled.arguments, number=number)])


def _results(since: Sequence[Line]) -> list[tuple[str, Mapping[str, Any], Any]]:
    """The tool's name, the arguments and the value of each call of the last answer."""
    calls = {call.id: call for line in since if isinstance(line, Proposed) for call in line.calls}
    last = next((index for index in range(len(since) - 1, -1, -1) if isinstance(since[index], Proposed)), 0)
    return [
        (line.name, _given(calls.get(line.call_id)), telling.data(line.text))
        for line in since[last:]
        if isinstance(line, Resulted)
    ]


def _given(call: ToolCall | None) -> Mapping[str, Any]:
    found = telling.data(call.arguments) if call is not None else None
    return found if isinstance(found, dict) else {}


def _was_called(since: Sequence[Line], tool: ToolOffer) -> bool:
    return any(call.name == tool.name for line in since if isinstance(line, Proposed) for call in line.calls)


def _call(tool: ToolOffer, arguments: Mapping[str, Any], *, number: int, part: int = 0) -> ToolCall:
    return ToolCall(id=f"demo-{number}-{part}", name=tool.name, arguments=json.dumps(arguments, ensure_ascii=False))


def _announced(tool: ToolOffer) -> str:
    return "I prepare that change." if tool.is_write else "Let me look that up."
