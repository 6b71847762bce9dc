"""The body, and step 4: is there such a tool for this caller (RF-4)?"""

from apps.api import (
    registry,
    scopes,
    strict_json,
)
from apps.api.call import Call
from apps.api.problems import Problem
from apps.api.steps import exposure, toll
from apps.api.tool import Tool


def read_input(call: Call) -> None:
    """The body, where the transport brought a function that reads it. A refused body costs a key one unit (RF-14)."""
    try:
        if callable(call.input):
            call.input, call.read_strictly = call.input(), True
        _refuse_key_text(call)
    except Problem as problem:
        _shows_a_key(call, problem.unread)
        toll.pay_one(call)
        raise


def _refuse_key_text(call: Call) -> None:
    """A key's text anywhere in the input: refused, nothing stored, and a real key is marked as exposed (KY-5)."""
    for part in (call.entrance.idempotency_key, *strict_json.parts(call.input)):
        if isinstance(part, str) and _shows_a_key(call, part):
            raise Problem(
                "credential_in_body", "An API key does not belong in the body. Send it as Authorization: Bearer."
            )


def _shows_a_key(call: Call, text: str) -> bool:
    return exposure.shows_a_key(text, request_id=call.entrance.request_id, ip=call.entrance.ip)


def look_up(call: Call) -> None:
    """RF-4. A refusal costs a key one unit, so nobody loops over invented names for free."""
    try:
        call.tool = _visible(call)
    except Problem:
        toll.pay_one(call)
        raise


def _visible(call: Call) -> Tool:
    assert call.switches is not None  # noqa: S101 - `switch` came first
    name = call.resolve_name(call.name) if call.resolve_name else call.name
    tool = registry.current().find(call.audience, name)
    if tool is None or not call.switches.is_open(tool):
        raise Problem("not_found", "There is no such tool.")
    if not call.switches.is_on(tool.module):
        raise Problem("module_disabled", "The module of this tool is switched off.")
    find_scopes(call)
    if not scopes.cover(call.scopes, tool):
        raise Problem("forbidden", "The key does not hold the scope of this tool.", scope=tool.scope)
    return tool


def find_scopes(call: Call) -> None:
    """KY-3: the key's scopes that its owner holds right now, computed once a request and trusted afterwards."""
    if call.actor is not None and call.actor.key is not None and call.switches is not None:
        call.scopes = scopes.held(call.actor.key.owner, call.actor.key.scopes, call.switches)
