"""MCP's methods over the executor: each takes the entered call and the message, and gives the answer to send."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import HttpResponse
from django.http.response import HttpResponseBase

from apps.api import executor, outcomes
from apps.api.call import Call, Refusal
from apps.api.mcp import calling, instructions, listing, providing, replies, streaming, tasks
from apps.api.mcp.protocol import HANDSHAKE, INVALID_PARAMS, METHOD_NOT_FOUND, SUPPORTED, Message

# How long a client may keep a list. A call is decided on the state of its own moment, whatever was listed.
TTL_MS = 60_000

_CAPABILITIES: dict[str, Any] = {"tools": {"listChanged": False}}

Method = Callable[[Call, Message], HttpResponseBase]


def answer(call: Call, message: Message) -> HttpResponseBase:
    """The answer to a request. Raises Fault for what the protocol refuses; nothing is paid for it yet."""
    method = (_MODERN if message.is_modern else _HANDSHAKE).get(message.method)
    if method is None and providing.serves(call, message.method):
        return providing.answer(call, message, _cached(message))
    if method is None:
        raise message.fault(METHOD_NOT_FOUND, "Method not found")
    return method(call, message)


def _initialize(call: Call, message: Message) -> HttpResponse:
    wanted = message.params.get("protocolVersion")
    if not isinstance(wanted, str):
        raise message.fault(INVALID_PARAMS, "protocolVersion must be a string.")
    return _paid(
        call,
        message,
        {
            "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1],
            "capabilities": {**_CAPABILITIES, **providing.capabilities(call)},
            "serverInfo": replies.SERVER,
            "instructions": instructions.of(call.audience),
        },
    )


def _discover(call: Call, message: Message) -> HttpResponse:
    return _paid(
        call,
        message,
        {
            "supportedVersions": SUPPORTED,
            "capabilities": {**_CAPABILITIES, **providing.capabilities(call), **tasks.capabilities(call)},
            "instructions": instructions.of(call.audience),
            **_cached(message),
        },
    )


def _ping(call: Call, message: Message) -> HttpResponse:
    return _paid(call, message, {})


def _tools_list(call: Call, message: Message) -> HttpResponse:
    if message.params.get("cursor") is not None:
        raise message.fault(INVALID_PARAMS, "There is one page: this server gives no cursor.")
    found = executor.visible(call, call.audience)
    if isinstance(found, Refusal):
        return replies.refused(message.id, found)
    tools = [*map(listing.describe, found.tools), *providing.tools(call)]
    return replies.result(message, {"tools": tools, **_cached(message)}, found.headers)


def _paid(call: Call, message: Message, value: dict[str, Any]) -> HttpResponse:
    refusal = executor.pay(call, call.audience)
    return replies.refused(message.id, refusal) if refusal else replies.result(message, value, outcomes.charged(call))


def _cached(message: Message) -> dict[str, Any]:
    return {"ttlMs": TTL_MS, "cacheScope": "private"} if message.is_modern else {}


_BOTH: dict[str, Method] = {"tools/list": _tools_list, "tools/call": partial(streaming.answer, calling.answer)}
_HANDSHAKE: dict[str, Method] = {"initialize": _initialize, "ping": _ping, **_BOTH}
_TASKS: dict[str, Method] = {"tasks/get": tasks.get, "tasks/update": tasks.update, "tasks/cancel": tasks.cancel}
_MODERN: dict[str, Method] = {"server/discover": _discover, **_TASKS, **_BOTH}
