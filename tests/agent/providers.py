"""Driving the adapter against a provider of `tests.agent.wire`, over real sockets."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from ipaddress import ip_network
from typing import Any, TypeVar

import pytest

from apps.agent.providers.adapter import DirectModel
from apps.agent.providers.connection import Connection
from apps.agent.providers.protocol import Ask, Failure, Line, Piece, Proposed, Resulted, Said, ToolCall, ToolOffer
from tests.agent.wire.anthropic import Anthropic
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.server import KEY, Wire

T = TypeVar("T")

LOOPBACK = (ip_network("127.0.0.0/8"),)
WIRES: dict[str, type[Wire]] = {"openai": OpenAI, "anthropic": Anthropic}
BOTH = pytest.mark.parametrize("name", ["openai", "anthropic"])

LOOKUP = ToolOffer(
    name="catalogue_list_products",
    description="Lists products.",
    schema={
        "type": "object",
        "properties": {"query": {"type": "string", "maxLength": 20}},
        "additionalProperties": False,
    },
)
HISTORY: tuple[Line, ...] = (
    Said(text="Which bolts are there?"),
    Proposed(
        text="I look.",
        calls=(
            ToolCall(id="call_1", name="catalogue_list_products", arguments='{"query": "bolt"}'),
            ToolCall(id="call_2", name="catalogue_list_products", arguments="{broken"),
        ),
    ),
    Resulted(call_id="call_1", name="catalogue_list_products", text='{"products": []}'),
    Resulted(call_id="call_2", name="catalogue_list_products", text='{"code": "validation_failed"}'),
    Proposed(text="None."),
    Said(text="And screws?"),
)


def ask(*history: Line, **fields: Any) -> Ask:
    return Ask(instructions="Be brief.", history=history or [Said(text="Hello")], **fields)


def connection_to(wire: Wire, **fields: Any) -> Connection:
    name = "anthropic" if isinstance(wire, Anthropic) else "openai"
    return Connection(
        **{"provider": name, "model": "wire-1", "base_url": wire.url, "key": KEY, "networks": LOOPBACK, **fields}
    )


def run(work: Callable[[DirectModel], Awaitable[T]], connection: Connection) -> T:
    """The work in a loop of its own, with a model of its own, as a turn has them."""

    async def turn() -> T:
        model = DirectModel(connection)
        try:
            return await work(model)
        finally:
            await model.close()

    coroutine: Coroutine[Any, Any, T] = turn()
    return asyncio.run(coroutine)


def answer(connection: Connection, asked: Ask | None = None) -> list[Piece]:
    """All pieces of one answer."""

    async def collect(model: DirectModel) -> list[Piece]:
        return [piece async for piece in model.answer(asked or ask())]

    return run(collect, connection)


def failure(connection: Connection, asked: Ask | None = None) -> Failure:
    """The failure that the answer ends with."""
    with pytest.raises(Failure) as caught:
        answer(connection, asked)
    return caught.value
