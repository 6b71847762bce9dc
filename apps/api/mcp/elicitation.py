"""The second word by elicitation (MC-4, 2026-07-28): a question to the client's person, and a signed state that names the held call.

The state holds the confirmation's uuid, signed for one caller and one tool; arguments, time and the one use are the row's. It is no proof
of a person: a model can answer for them (MC-6).
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from django.core.signing import BadSignature, Signer

from apps.api import callers, registry, strict_json
from apps.api.call import Answer, Call
from apps.api.mcp.protocol import INVALID_PARAMS, Message

Reply = Literal["yes", "no", "leave", "again"]

# The names that the protocol's own examples have.
_QUESTION, _FIELD = "confirm", "ok"
_MOST_ROWS = 20
_LONGEST_SUMMARY, _LONGEST_PART, _LONGEST_VALUE = 4_000, 100, 200

# What would start a line, steer a terminal or turn the order of reading around: stored values are other people's words.
_STEERING = re.compile(r"(?:[^\S ]|[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069])+")


def is_possible(message: Message, mode: str = "form") -> bool:
    """Whether the client declared, for this very request, that it shows forms (which an empty object says too), or opens pages: "url"."""
    declared = message.capabilities.get("elicitation")
    if not isinstance(declared, dict):
        return False
    return isinstance(declared.get(mode), dict) or (mode == "form" and not declared)


def question(title: str, shown: Mapping[str, Any], state: str) -> dict[str, Any]:
    """The result that asks instead of answering."""
    rule = {"type": "boolean", "title": "Confirm", "description": "Yes: run it exactly as shown."}
    schema = {"type": "object", "properties": {_FIELD: rule}, "required": [_FIELD]}
    params = {"mode": "form", "message": _words(title, shown), "requestedSchema": schema}
    return {
        "resultType": "input_required",
        "inputRequests": {_QUESTION: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    }


def state_of(call: Call, answer: Answer) -> str:
    """The state for the prompt that the call was answered."""
    uuid = answer.result["confirmation_id"]
    return _signer(callers.of(call), call.found_tool.name).sign(str(uuid))


def uuid_of(call: Call, message: Message, name: str, arguments: Any) -> UUID | None:
    """The held call that the request's state names; None: it brings none. Raises Fault for a state that is not ours for this caller."""
    state = message.params.get("requestState")
    if state is None:
        return None
    canonical = registry.current().canonical(call.audience, name)
    tool = registry.current().find(call.audience, canonical)
    caller = callers.of(replace(call, tool=tool, input=arguments))
    try:
        return UUID(_signer(caller, canonical).unsign(state))
    except (BadSignature, ValueError, TypeError, AttributeError):
        raise message.fault(INVALID_PARAMS, "requestState is not one that this server gave for this call.") from None


def reply(message: Message) -> Reply:
    """What the client answered. Anything but a clear yes, no or cancel asks again."""
    given = message.params.get("inputResponses")
    found = given.get(_QUESTION) if isinstance(given, dict) else None
    if not isinstance(found, dict):
        return "again"
    content = found.get("content")
    word = content.get(_FIELD) if isinstance(content, dict) else None
    match found.get("action"), word:
        case "accept", True:
            return "yes"
        case ("decline", _) | ("accept", False):
            return "no"
        case "cancel", _:
            return "leave"
        case _:
            return "again"


def _signer(caller: str | None, tool: str) -> Signer:
    return Signer(salt=json.dumps(["apps.api.mcp.elicitation", caller, tool]))


def _words(title: str, shown: Mapping[str, Any]) -> str:
    """The preview as plain lines, for clients that show text. A preview of another shape is shown as it is."""
    listed, more = shown.get("rows"), shown.get("more")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    hidden = max(0, len(rows) - _MOST_ROWS) + (more if isinstance(more, int) else 0)
    summary = _plain(shown.get("summary") or strict_json.dumps(shown).decode(), _LONGEST_SUMMARY)
    lines = [f"{title}: {summary}", *map(_line, rows[:_MOST_ROWS]), *([f"- and {hidden} more"] if hidden else [])]
    return "\n".join(lines)


def _line(row: Mapping[str, Any]) -> str:
    label, field, note = (_plain(row.get(name) or "", _LONGEST_PART) for name in ("label", "field", "note"))
    before, after = (_plain(row.get(name), _LONGEST_VALUE) for name in ("before", "after"))
    return f"- {label}, {field}: {before} → {after} {note}".rstrip()


def _plain(value: Any, longest: int) -> str:
    """The value inside one line, and so short that it hides no other one."""
    text = _STEERING.sub(" ", str(value))
    return text if len(text) <= longest else f"{text[:longest]}…"
