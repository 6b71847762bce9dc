"""Step 6: is the input right (RF-6)? From here on a key's write leaves an entry."""

from typing import Any

from pydantic import ValidationError

from apps.api import (
    canonical,
    idempotency,
    pricing,
    schemas,
    strict_json,
)
from apps.api.audit import Audit
from apps.api.call import Call
from apps.api.problems import Problem
from apps.api.tool import Tool


def open_audit(call: Call) -> None:
    """From here on a write of a key or of a person leaves an entry, however it ends (RF-10, LS-4)."""
    tool = call.found_tool
    if call.actor is None or call.actor.kind == "public" or not tool.is_write:
        return
    call.confirmation_uuid = call.asked_uuid
    call.audit = Audit(call=call, tool=tool, actor=call.actor)
    call.before_commit.append(call.audit.with_effect)
    call.afterwards.append(call.audit.without_effect)


def validate(call: Call) -> None:
    """RF-6: the rows first, then the closed schema, then the handler's own types and the root's defaults."""
    tool = call.found_tool
    check_values(call)
    if not isinstance(call.input, dict):
        raise invalid([schemas.fault("", "The input must be an object.")])
    if tool.max_items is not None and pricing.rows(call.input) > tool.max_items:
        raise Problem("too_many_items", f"At most {tool.max_items} rows are allowed.", max_items=tool.max_items)
    given = _with_header(call, tool)
    if found := schemas.faults(tool.validator, given):
        raise invalid(found)
    takes_control = tool.is_write and not tool.is_direct
    call.control = {name: given[name] for name in schemas.CONTROL_FIELDS if name in given} if takes_control else {}
    _refuse_control_fields(call)
    own = {name: part for name, part in given.items() if name not in call.control}
    try:
        call.typed = tool.form.typed({**tool.defaults, **own})
    except ValidationError as error:
        raise invalid([schemas.fault(schemas.pointer(row["loc"]), row["msg"]) for row in error.errors()]) from None
    if tool.is_write:
        call.input_hash = canonical.digest(tool.name, own)


def check_values(call: Call) -> None:
    """Input that was made in this process is held to what the strict reader holds a body to (IN-1)."""
    if not call.read_strictly and (reason := strict_json.check_value(call.input)) is not None:
        raise invalid([schemas.fault("", f"The input holds {reason}.")])
    call.read_strictly = True


def _refuse_control_fields(call: Call) -> None:
    """LS-3: a session's write has neither code nor key, and its confirmation is no preview either."""
    if call.on_behalf is None:
        return
    taken = () if call.redeems else ("dry_run",)
    refused = [name for name in call.control if name not in taken]
    if refused:
        raise invalid(
            [schemas.fault(f"/{name}", "A call for a live session does not take this field.") for name in refused]
        )


def _with_header(call: Call, tool: Tool) -> dict[str, Any]:
    """A write's Idempotency-Key header is merged before validation, so it is held to the same rules as the field (RF-13)."""
    given: dict[str, Any] = call.input
    takes_key = call.idempotency_header and tool.is_write and not tool.is_direct
    header = call.entrance.idempotency_key if takes_key else None
    if header is None:
        return given
    if "idempotency_key" in given and _same_key(given["idempotency_key"]) != _same_key(header):
        raise invalid([schemas.fault("/idempotency_key", "The header and the field differ.")])
    return {**given, "idempotency_key": header}


def _same_key(text: object) -> object:
    """The quoted and the bare form are one key; what is malformed is compared as it is."""
    return (idempotency.parse_key(text) if isinstance(text, str) else None) or text


def invalid(errors: list[dict[str, str]]) -> Problem:
    return Problem(
        "validation_failed", "The input does not fit the tool's schema.", errors=errors[: schemas.MAX_FAULTS]
    )
