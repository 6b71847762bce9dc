"""The request flow's public doors (RF-12): `enter` is steps 1 to 3, `execute` and `visible` the rest; `call` and `list` send it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.http import HttpRequest, HttpResponse

from apps.api import doorway, gate, handlers, listing, outcomes, pricing, registry, scopes
from apps.api.call import Answer, Audience, Call, Listing, Outcome, Refusal
from apps.api.tool import Tool

__all__ = ["call", "cost", "enter", "execute", "input_schema", "list", "visible"]


def enter(call: Call) -> Refusal | None:
    """Steps 1 to 3 for a call that came through the door. None: the caller is known and may go on."""
    outcome = gate.go(call, gate.ENTER)
    assert not isinstance(outcome, Answer)  # noqa: S101 - no step of this chain answers
    return outcome


def execute(
    call: Call,
    audience: Audience,
    name: str,
    input: Any,
    *,
    resolve_name: Callable[[str], str] | None = None,
    idempotency_header: bool = True,
) -> Outcome:
    """Run the tool `name` for the entered caller and return the outcome, its entry written.

    `input` is a JSON value, or a function without arguments that reads it and may raise Problem. `resolve_name` maps the name as the
    caller spelled it to the tool's; it runs in the lookup step, after the public charge. `idempotency_header` False: only the field counts.
    """
    _must_have_entered(call, audience)
    call.name, call.input = name, input
    call.resolve_name, call.idempotency_header = resolve_name, idempotency_header
    outcome = gate.go(call, gate.KEY if audience == "admin" else gate.PUBLIC)
    assert outcome is not None  # noqa: S101 - the last step of both chains ends the call
    return outcome


def visible(call: Call, audience: Audience) -> Listing | Refusal:
    """The tools that the entered caller may call; costs one unit."""
    _must_have_entered(call, audience)
    refusal = gate.go(call, gate.LISTING)
    if isinstance(refusal, Refusal):
        return refusal
    tools = tuple(tool for tool in registry.current().of(audience) if _may_call(call, tool))
    return Listing(tools=tools, headers=outcomes.charged(call))


def call(request: HttpRequest, audience: Audience, name: str, read: Callable[[], Any]) -> HttpResponse:
    """Send what `execute` returns. `read` is asked for the body when its turn comes."""
    state = doorway.call_of(request, audience)
    return doorway.response(enter(state) or execute(state, audience, name, read))


def list(request: HttpRequest, audience: Audience) -> HttpResponse:  # noqa: A001 - the flow's own word
    """Send what `visible` returns, as `{"tools": [...]}`."""
    state = doorway.call_of(request, audience)
    found = enter(state) or visible(state, audience)
    if isinstance(found, Refusal):
        return doorway.response(found)
    answer = handlers.answer({"tools": [listing.describe(tool) for tool in found.tools]}, limit=None)
    return doorway.response(replace(answer, headers=found.headers))


def input_schema(tool: Tool) -> dict[str, Any]:
    """The closed schema that `execute` validates against: the one source for lists, MCP and OpenAPI (IN-2)."""
    return tool.input_schema


def cost(tool: Tool | None, input: Any) -> int:
    """Units of one call (RL-1); None is a listing."""
    return pricing.cost(tool, input)


def _must_have_entered(call: Call, audience: Audience) -> None:
    if call.actor is None or call.audience != audience:
        raise RuntimeError("The call has not passed `enter` for this audience.")


def _may_call(call: Call, tool: Tool) -> bool:
    switches = call.switches
    assert switches is not None  # noqa: S101 - `enter` came first
    return switches.is_open(tool) and switches.is_on(tool.module) and scopes.cover(call.scopes, tool)
