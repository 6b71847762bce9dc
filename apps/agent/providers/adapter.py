"""The models of OpenAI's wire format and of Anthropic's, through pydantic-ai's direct interface. Imported by workers only (SP-5).

Nothing is tried again here, and no type of a library passes the protocol's border.
"""

import json
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import suppress
from typing import Any

import httpx2
from pydantic_ai import direct
from pydantic_ai import messages as theirs
from pydantic_ai.models import Model as TheirModel
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from apps.agent.providers import failures, transport
from apps.agent.providers.connection import Connection
from apps.agent.providers.protocol import (
    Ask,
    Failure,
    Line,
    Piece,
    Proposed,
    Resulted,
    Said,
    Text,
    ToolCall,
    ToolOffer,
    Usage,
)


class DirectModel:
    """One model of one turn, with a client of its own. Making it raises Failure for an address that none can be made for."""

    def __init__(self, connection: Connection) -> None:
        self.provider, self.model = connection.provider, connection.model
        self._connection = connection
        self._http = transport.client(connection)
        try:
            self._model = _model(connection, self._http)
        except httpx2.InvalidURL:
            raise Failure("endpoint_forbidden", "The address can't be read.") from None

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Text as it comes, then the calls, then the usage. Whatever ends this generator closes the connection."""
        has_begun = False
        try:
            async with self._stream(ask) as stream:
                async for event in stream:
                    has_begun = True
                    if text := _text(event):
                        yield Text(text=text)
                for piece in _rest(stream):
                    yield piece
        except Failure:
            raise
        except Exception as error:
            connection = self._connection
            raise failures.of(error, has_begun=has_begun, key=connection.key, explains=connection.explains) from None

    async def close(self) -> None:
        with suppress(Exception):  # of a connection that broke already
            await self._http.aclose()

    def _stream(self, ask: Ask) -> Any:
        return direct.model_request_stream(
            self._model,
            _messages(ask),
            model_settings=ModelSettings(max_tokens=ask.max_output_tokens),
            model_request_parameters=ModelRequestParameters(function_tools=[_tool(offer) for offer in ask.tools]),
            instrument=False,
        )


def _model(connection: Connection, http: Any) -> TheirModel:
    # The library of the maker that is asked for, and not the other's: each takes a second and forty megabytes.
    if connection.provider == "anthropic":
        from apps.agent.providers import anthropic_wire

        return anthropic_wire.model(connection, http)
    from apps.agent.providers import openai_wire

    return openai_wire.model(connection, http)


def _tool(offer: ToolOffer) -> ToolDefinition:
    return ToolDefinition(
        name=offer.name, description=offer.description, parameters_json_schema=dict(offer.schema), strict=False
    )


def _messages(ask: Ask) -> list[theirs.ModelMessage]:
    """The history in their form: what comes between two answers of the model is one request."""
    found: list[theirs.ModelMessage] = []
    for line in ask.history:
        if isinstance(line, Proposed):
            if parts := _proposed(line):
                found.append(theirs.ModelResponse(parts=parts))
        elif found and isinstance(found[-1], theirs.ModelRequest):
            found[-1].parts = [*found[-1].parts, _asked(line)]
        else:
            found.append(theirs.ModelRequest(parts=[_asked(line)]))
    if found and isinstance(found[-1], theirs.ModelRequest):
        found[-1].instructions = ask.instructions or None
    return found


def _asked(line: Line) -> theirs.ModelRequestPart:
    match line:
        case Said():
            return theirs.UserPromptPart(content=line.text)
        case Resulted():
            return theirs.ToolReturnPart(tool_name=line.name, content=line.text, tool_call_id=line.call_id)
        case Proposed():
            raise TypeError(line)


def _proposed(line: Proposed) -> list[theirs.ModelResponsePart]:
    text: list[theirs.ModelResponsePart] = [theirs.TextPart(content=line.text)] if line.text.strip() else []
    return text + [
        theirs.ToolCallPart(tool_name=call.name, args=_arguments(call.arguments), tool_call_id=call.id)
        for call in line.calls
    ]


def _arguments(text: str) -> str:
    """A JSON object, since servers take nothing else back: what the model sent may be none."""
    try:
        value = json.loads(text)
        # Python reads NaN and 1e999, and JSON has neither: one of them would keep every later turn of the chat from being sent.
        json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        value = None
    return text if isinstance(value, dict) else json.dumps({"not_an_object": text})


def _text(event: Any) -> str:
    match event:
        case theirs.PartStartEvent(part=theirs.TextPart(content=content)):
            return content
        case theirs.PartDeltaEvent(delta=theirs.TextPartDelta(content_delta=content)):
            return content
        case _:
            return ""


def _rest(stream: StreamedResponse) -> Iterator[Piece]:
    """What is known at the end. Raises Failure for an answer that has none, and for one that the provider held back."""
    response = stream.get()
    if "finish_reason" not in (response.provider_details or {}) and response.finish_reason != "content_filter":
        raise Failure("provider_cut", "The stream ended before the answer did.")
    if response.finish_reason == "content_filter":
        raise Failure("provider_refused", "The provider's filter held the answer back.")
    is_cut = response.finish_reason == "length"
    # What stands last when the limit is reached is not whole.
    whole = response.parts[:-1] if is_cut else response.parts
    yield from _calls([part for part in whole if isinstance(part, theirs.ToolCallPart)])
    usage = response.usage
    yield Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        is_cut=is_cut,
        is_counted=not usage.unmeasured_requests and usage.input_tokens + usage.output_tokens > 0,
    )


def _calls(parts: Sequence[theirs.ToolCallPart]) -> Iterator[ToolCall]:
    for part in parts:
        arguments = part.args if isinstance(part.args, str) else json.dumps(part.args or {})
        yield ToolCall(id=part.tool_call_id, name=part.tool_name, arguments=arguments or "{}")
