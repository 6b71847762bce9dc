"""The body, and step 4: is there such a tool for this caller (RF-4)?"""

from apps.api import (
    registry,
    scopes,
    strict_json,
)
from apps.api.call import Call
from apps.api.problems import Problem
from apps.api.steps import exposure, toll
from apps.api.switches import Switches
from apps.api.tool import Tool


def read_input(call: Call) -> None:
    """The body, where the transport brought a function that reads it. A refused body costs a key one unit (RF-14)."""
    if call.read_strictly:
        return  # by `read_message`, and searched whole
    try:
        if callable(call.input):
            call.input, call.read_strictly = call.input(), True
        refuse_key_text(call)
    except Problem as problem:
        _shows_a_key(call, problem.unread)
        toll.pay_one(call)
        raise


def read_message(call: Call) -> None:
    """The whole message of a transport that learns from it what is asked, so nothing is paid yet. A refused one costs a unit."""
    try:
        call.input, call.read_strictly = call.input(), True
        refuse_key_text(call)
    except Problem as problem:
        _shows_a_key(call, problem.unread)
        toll.charge_listing(call)
        raise


def refuse_key_text(call: Call) -> None:
    """A key's text anywhere in the input: refused, nothing stored, and a real key is marked as exposed (KY-5)."""
    for part in (call.entrance.idempotency_key, *strict_json.parts(call.input)):
        if isinstance(part, str) and _shows_a_key(call, part):
            raise Problem(
                "credential_in_body", "An API key does not belong in the body. Send it as Authorization: Bearer."
            )


def _shows_a_key(call: Call, text: str) -> bool:
    return exposure.shows_a_key(text, request_id=call.entrance.request_id, ip=call.entrance.ip)


def look_up(call: Call) -> None:
    """RF-4. A refusal costs a key or a person one unit, so nobody loops over invented names for free."""
    assert call.switches is not None  # noqa: S101 - the first step read them
    try:
        name = call.resolve_name(call.name) if call.resolve_name else call.name
        tool = registry.current().find(call.audience, name) if isinstance(name, str) else None
        if tool is None:
            raise _not_found()
        find_scopes(call)
        _must_be_visible(call, tool, call.switches)
    except Problem:
        toll.pay_one(call)
        raise
    call.tool = tool


def may_call(call: Call, tool: Tool) -> bool:
    """Whether `look_up` would let the caller have the tool. `find_scopes` came first."""
    assert call.switches is not None  # noqa: S101 - the first step read them
    try:
        _must_be_visible(call, tool, call.switches)
    except Problem:
        return False
    return True


def find_scopes(call: Call) -> None:
    """KY-3: the key's scopes that its owner holds right now, or all that a session's person holds, computed once a request."""
    actor = call.actor
    if actor is None or actor.scope is None or call.switches is None:
        return
    if actor.key is not None:
        call.scopes = scopes.held(actor.key.owner, actor.key.scopes, call.switches)
    else:
        call.scopes = scopes.held_by_person(actor.scope, call.switches)


def _must_be_visible(call: Call, tool: Tool, now: Switches) -> None:
    if not now.is_open(tool):
        raise _not_found()
    if not now.is_on(tool.module):
        raise Problem("module_disabled", "The module of this tool is switched off.")
    if call.on_behalf is not None:
        _must_be_for_session(call, tool, now)
    elif not scopes.cover(call.scopes, tool):
        raise Problem("forbidden", "The key does not hold the scope of this tool.", scope=tool.scope)


def _must_be_for_session(call: Call, tool: Tool, now: Switches) -> None:
    """LS-1, in its order. Core's own tools describe the calling key, and no session has one."""
    assert call.on_behalf is not None and call.actor is not None and call.actor.scope is not None  # noqa: PT018, S101 - `open_session`
    if tool.module.key == "system":
        raise Problem("forbidden", "This tool describes the calling key, and a session has none.")
    if tool.is_write and call.on_behalf.allow != "all":
        raise Problem("forbidden", "This call may only read.")
    if tool.is_write and not now.agent_may_act(tool.module):
        raise Problem("module_write_disabled", "Nothing may be written in this module on behalf of a person.")
    if not scopes.person_may_call(call.actor.scope, call.scopes, tool):
        raise Problem("forbidden", "You do not hold the scope and the permission of this tool.", scope=tool.scope)


def _not_found() -> Problem:
    return Problem("not_found", "There is no such tool.")
