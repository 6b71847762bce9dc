"""The request flow's public doors (RF-12): `enter` is steps 1 to 3, `execute` and `visible` the rest; `call` and `list` send it.

`execute_as`, `redeem_as`, `reject_as` and `visible_for` are the doors of a person's live session, in process (section 17). Whoever passes
a session reference acts as that session: take it from the signed session of the request alone, never from what a client sends.
"""

import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from apps.api import doorway, gate, handlers, listing, on_behalf, outcomes, pricing, registry
from apps.api.availability import tool_availability
from apps.api.call import Answer, Audience, Call, Listing, OnBehalf, Outcome, Refusal
from apps.api.steps import lookup
from apps.api.steps import provided as provided_steps
from apps.api.tool import Tool

__all__ = [
    "call",
    "cost",
    "elicited",
    "enter",
    "execute",
    "execute_as",
    "input_schema",
    "list",
    "pay",
    "provided",
    "receive",
    "redeem_as",
    "reject_as",
    "tool_availability",
    "visible",
    "visible_for",
]

T = TypeVar("T")


def enter(call: Call) -> Refusal | None:
    """Steps 1 to 3 for a call that came through the door. None: the caller is known and may go on."""
    outcome = gate.go(call, gate.ENTER)
    assert not isinstance(outcome, Answer)  # noqa: S101 - no step of this chain answers
    return outcome


def receive(call: Call, audience: Audience, read: Callable[[], Any], *, is_large: bool) -> Refusal | None:
    """Read the entered caller's message into `call.input` before it is known what it asks for; a refused one costs a unit.

    A visitor's that `is_large` is paid first: without the unit it stays unread.
    """
    _must_have_entered(call, audience)
    call.input = read
    outcome = gate.go(call, gate.LARGE_MESSAGE if is_large and audience == "public" else gate.MESSAGE)
    assert not isinstance(outcome, Answer)  # noqa: S101 - no step of this chain answers
    return outcome


def pay(call: Call, audience: Audience) -> Refusal | None:
    """The unit of a message that is neither a call nor a listing; what it cost is in `outcomes.charged(call)`."""
    _must_have_entered(call, audience)
    outcome = gate.go(call, gate.METHOD)
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


def elicited(
    call: Call,
    audience: Audience,
    confirmation_uuid: UUID,
    name: str,
    input: Any,
    *,
    rejects: bool,
    resolve_name: Callable[[str], str] | None = None,
) -> Outcome:
    """What becomes of a held call whose transport asked for the second word and got no yes: rejected, or left waiting. Costs one unit.

    The uuid must come from a state that the transport signed for this caller. A yes is `execute` with `call.elicited` set.
    """
    _must_have_entered(call, audience)
    call.name, call.input, call.resolve_name = name, input, resolve_name
    call.asked_uuid, call.elicited = confirmation_uuid, True
    key, public = (gate.DECLINE, gate.PUBLIC_DECLINE) if rejects else (gate.LEAVE, gate.PUBLIC_LEAVE)
    return _go_as(call, key if audience == "admin" else public)


def visible(call: Call, audience: Audience) -> Listing | Refusal:
    """The tools that the entered caller may call; costs one unit."""
    _must_have_entered(call, audience)
    refusal = gate.go(call, gate.LISTING)
    if isinstance(refusal, Refusal):
        return refusal
    tools = tuple(tool for tool in registry.current().of(audience) if lookup.may_call(call, tool))
    return Listing(tools=tools, headers=outcomes.charged(call))


def provided(call: Call, audience: Audience, name: str, ask: Callable[[], T], *, scope: str) -> T | Refusal:
    """What `ask` gives, for a caller that holds the API scope; costs one unit. It is the host's code: nothing can be written in it.

    Whatever it raises is a 500, whose detail goes to the log under `name`.
    """
    _must_have_entered(call, audience)
    call.name = name
    given: builtins.list[T] = []
    steps = partial(provided_steps.hold, scope=scope), partial(provided_steps.answer, ask=ask, given=given)
    refusal = gate.go(call, (*gate.LISTING, *steps))
    assert not isinstance(refusal, Answer)  # noqa: S101 - no step of this chain answers
    return refusal or given[0]


def execute_as(
    session_ref: object,
    audience: Audience,
    name: str,
    input: Any,
    *,
    impersonated: bool,
    allow: str = "read",
    via: str = "session",
    request_context: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run a read for the person of a live session, or hold a write for their confirmation, and return the outcome (LS-1 to LS-4).

    `allow="read"` refuses every write; `"all"` opens those of the modules where "Agent may act" is on. `via` says what asks, in 64 bytes.
    `request_context`: see `on_behalf.entrance`. Raises ValueError for an odd option.
    """
    on = on_behalf.options(session_ref, audience=audience, impersonated=impersonated, allow=allow, via=via)
    return _go_as(_call_as(on, request_context, name=name, input=input), gate.SESSION)


def redeem_as(
    session_ref: object,
    audience: Audience,
    confirmation_uuid: object,
    name: str,
    input: Any,
    *,
    impersonated: bool,
    via: str = "session",
    request_context: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run the held write that `execute_as` answered `confirmation_uuid` for: the person confirms it, with the same tool and input.

    Everything is checked again as of now. 409 `confirm_token_invalid` has the reason; changed values answer the prompt of a new row (LS-3).
    """
    on = on_behalf.options(session_ref, audience=audience, impersonated=impersonated, allow="all", via=via)
    asked = _uuid(confirmation_uuid)
    return _go_as(_call_as(on, request_context, name=name, input=input, redeems=True, asked_uuid=asked), gate.REDEEM)


def reject_as(session_ref: object, confirmation_uuid: object, *, impersonated: bool, via: str = "session") -> Outcome:
    """The person says no to a held write: `{"status": "rejected", "confirmation_id"}`, or 409 with `redeem_as`'s reasons. Costs nothing."""
    on = on_behalf.options(session_ref, audience="admin", impersonated=impersonated, allow="all", via=via)
    return _go_as(_call_as(on, None, asked_uuid=_uuid(confirmation_uuid)), gate.REJECT)


def visible_for(
    session_ref: object, audience: Audience, *, impersonated: bool, allow: str = "read"
) -> Listing | Refusal:
    """The tools that the live session may call, by name; costs one unit of the person. `allow` as for `execute_as`."""
    on = on_behalf.options(session_ref, audience=audience, impersonated=impersonated, allow=allow, via="session")
    state = _call_as(on, None)
    refusal = gate.go(state, gate.SESSION_LISTING)
    if isinstance(refusal, Refusal):
        return refusal
    tools = tuple(tool for tool in registry.current().of("admin") if lookup.may_call(state, tool))
    return Listing(tools=tools, headers=outcomes.charged(state))


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


def _call_as(on: OnBehalf, context: Mapping[str, Any] | None, **more: Any) -> Call:
    return Call(entrance=on_behalf.entrance(context), audience="admin", on_behalf=on, **more)


def _go_as(call: Call, chain: Sequence[gate.Step]) -> Outcome:
    outcome = gate.go(call, chain)
    assert outcome is not None  # noqa: S101 - the last step of the chain ends the call
    return outcome


def _uuid(value: object) -> UUID | None:
    """The uuid that the text or value is; None for anything else, which is nobody's row."""
    try:
        return value if isinstance(value, UUID) else UUID(str(value))
    except ValueError:
        return None


def _must_have_entered(call: Call, audience: Audience) -> None:
    if call.actor is None or call.audience != audience:
        raise RuntimeError("The call has not passed `enter` for this audience.")
