"""Asking the host's provider (see `provider`): paid and run through the executor, its reply put into the protocol's form.

For keys alone. A tool that a module declares is never asked of it, not even while that one is closed.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from django.core import signing
from django.http import HttpResponse

from apps.api import callers, canonical, executor, handlers, outcomes, registry, schemas, strict_json
from apps.api.call import Call, Refusal
from apps.api.mcp import elicitation, provider, replies
from apps.api.mcp.protocol import INTERNAL_ERROR, INVALID_PARAMS, MISSING_CAPABILITY, Message
from apps.api.mcp.provider import METHODS, Provider, Question, Request, Tool, Unknown
from apps.api.problems import Problem

STATE_SECONDS = 600

_MAY_ASK = ("tools/call", "prompts/get", "resources/read")
_CACHED = ("prompts/list", "resources/list", "resources/templates/list", "resources/read")
_OF_THE_ENVELOPE = ("_meta", "inputResponses", "requestState")
_NEEDED = {"sampling/createMessage": "sampling", "roots/list": "roots"}
_HINTS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}


def capabilities(call: Call) -> dict[str, Any]:
    """What the provider's methods stand for. Neither changes nor subscriptions: this server keeps nothing to tell them by."""
    found = _of(call)
    return {} if found is None else {METHODS[method]: {} for method in sorted(found.methods)}


def serves(call: Call, method: str) -> bool:
    """Whether the provider answers the method."""
    found = _of(call)
    return found is not None and method in found.methods


def tools(call: Call) -> list[dict[str, Any]]:
    """The provider's tools as `tools/list` shows them, for a caller whose scopes are found."""
    found = _of(call)
    if found is None or found.scope not in call.scopes:
        return []
    return [_described(tool) for tool in found.tools if find(call, tool.name)]


def find(call: Call, name: str) -> Tool | None:
    """The provider's tool of this name, unless a module has one."""
    found, known = _of(call), registry.current()
    if found is None or known.find(call.audience, known.canonical(call.audience, name)):
        return None
    return next((tool for tool in found.tools if tool.name == name), None)


def answer(call: Call, message: Message, cached: Mapping[str, Any]) -> HttpResponse:
    """The answer to a method that the provider serves. `cached` is what a list says of how long it is good."""
    found = _of(call)
    assert found is not None  # noqa: S101 - `serves` said so
    extra = cached if message.method in _CACHED else {}
    outcome = _provided(call, message, found, partial(_replied, found=found, extra=extra))
    if not isinstance(outcome, Refusal):
        return outcome
    if outcome.problem.code != "internal_error":
        return replies.refused(message.id, outcome)
    fault = message.fault(INTERNAL_ERROR, "Internal error", strict_json.loads(outcome.body))
    return replies.fault(fault, outcome.headers)


def call_tool(call: Call, message: Message, tool: Tool, arguments: Mapping[str, Any]) -> HttpResponse:
    """The answer of a tool of the provider."""
    found = _of(call)
    assert found is not None  # noqa: S101 - `find` gave its tool

    def ask(call: Call, message: Message, request: Request) -> HttpResponse:
        if errors := schemas.faults(tool.validator, arguments):
            problem = Problem("validation_failed", "The input does not fit the tool's schema.", errors=errors)
            return replies.tool_result(message, outcomes.refusal(call, problem))
        return _replied(call, message, request, found=found, extra={})

    outcome = _provided(call, message, found, ask)
    return replies.tool_result(message, outcome) if isinstance(outcome, Refusal) else outcome


def _of(call: Call) -> Provider | None:
    return provider.current() if call.audience == "admin" else None


def _provided(
    call: Call, message: Message, found: Provider, ask: Callable[[Call, Message, Request], HttpResponse]
) -> HttpResponse | Refusal:
    """Raises Fault for odd answers to a question and for a state that is not ours: nothing is paid for it yet."""
    answers, state = (_answers(message), _state(call, message)) if message.is_modern else ({}, None)

    def asked() -> HttpResponse:
        assert call.actor is not None  # noqa: S101 - the executor has let the call enter
        params = {name: value for name, value in message.params.items() if name not in _OF_THE_ENVELOPE}
        request = Request(
            actor=call.actor,
            scopes=call.scopes,
            method=message.method,
            params=params,
            capabilities=message.capabilities,
            answers=answers,
            state=state,
        )
        return ask(call, message, request)

    return executor.provided(call, call.audience, message.method, asked, scope=found.scope)


def _replied(
    call: Call, message: Message, request: Request, *, found: Provider, extra: Mapping[str, Any]
) -> HttpResponse:
    """What the provider says, encoded. Raises Odd for what the protocol has no form for."""
    reply, headers = found.answer(request), outcomes.charged(call)
    match reply:
        case Unknown():
            sent = replies.fault(message.fault(INVALID_PARAMS, reply.message, reply.data), headers)
        case Question():
            sent = _asking(call, message, reply)
        case Mapping() if message.method != "tools/call" or isinstance(reply.get("content"), list):
            sent = replies.result(message, {**reply, **extra}, headers)
        case _:
            raise handlers.Odd("a provider answers a result (a tool's has content), a Question or Unknown")
    if len(sent.content) > handlers.MAX_RESULT:
        raise handlers.Odd("a result of more than 1 MiB")
    return sent


def _asking(call: Call, message: Message, question: Question) -> HttpResponse:
    """The question, where the client said that it can answer each part of it."""
    if message.method not in _MAY_ASK or not question.requests:
        raise handlers.Odd(f"{message.method} can't ask the client, or nothing was asked")
    headers = outcomes.charged(call)
    if missing := _missing(message, question):
        data = {"requiredCapabilities": missing}
        return replies.fault(message.fault(MISSING_CAPABILITY, "Missing required client capability", data), headers)
    state = {"requestState": signing.dumps(question.state, salt=_salt(call, message))}
    kept = {} if question.state is None else state
    value = {"resultType": "input_required", "inputRequests": question.requests, **kept}
    return replies.asking(message, value, headers)


def _missing(message: Message, question: Question) -> dict[str, Any]:
    """The capabilities that the question needs and the client did not declare. KeyError for a request that no client knows."""
    missing: dict[str, Any] = {}
    for asked in question.requests.values():
        if asked["method"] == "elicitation/create":
            mode = asked["params"].get("mode", "form")
            if not elicitation.is_possible(message, mode):
                missing.setdefault("elicitation", {})[mode] = {}
        elif not isinstance(message.capabilities.get(_NEEDED[asked["method"]]), dict):
            missing[_NEEDED[asked["method"]]] = {}
    return missing


def _answers(message: Message) -> Mapping[str, Mapping[str, Any]]:
    given = message.params.get("inputResponses", {})
    if not isinstance(given, dict) or not all(isinstance(said, dict) for said in given.values()):
        raise message.fault(INVALID_PARAMS, "inputResponses must be an object of objects.")
    return given


def _state(call: Call, message: Message) -> Any:
    text = message.params.get("requestState")
    try:
        return None if text is None else signing.loads(text, salt=_salt(call, message), max_age=STATE_SECONDS)
    except (signing.BadSignature, ValueError, TypeError, AttributeError):
        raise message.fault(INVALID_PARAMS, "requestState is not one that this server gave for this request.") from None


def _salt(call: Call, message: Message) -> str:
    """A state is good for the caller and the request that it was given for."""
    params = {name: value for name, value in message.params.items() if name not in _OF_THE_ENVELOPE}
    return f"apps.api.mcp.providing {callers.of(call)} {canonical.digest(message.method, params)}"


def _described(tool: Tool) -> dict[str, Any]:
    """A read, whatever it is called: nothing can be written while the provider answers."""
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.schema,
        "annotations": {"title": tool.title, **_HINTS},
    }
