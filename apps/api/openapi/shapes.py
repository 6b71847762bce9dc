"""The gate's own shapes: a problem, the answers that are no handler's, an approval, and what core's own tools answer (SPEC 26)."""

from collections.abc import Mapping
from typing import Any, get_args

from apps.api import system
from apps.api.openapi import limits
from apps.api.problems import Retry

_TEXT = {"type": "string"}
_UUID = {"type": "string", "format": "uuid"}
_TIME = {"type": "string", "format": "date-time"}
_COUNT = {"type": "integer", "minimum": 0}
_SECONDS = {**_COUNT, "description": "Seconds that are left; 0 when it is over."}
_PREVIEW = {
    "type": "object",
    "additionalProperties": True,
    "description": "What would change, as the tool shows it: in most cases `summary`, `rows` (`label`, `field`, `before`, `after`, "
    "`note`), `more` (rows that are not shown) and `totals`.",
}


def _or_null(rule: Mapping[str, Any]) -> dict[str, Any]:
    return {**rule, "type": [rule["type"], "null"]}


def _exactly(properties: Mapping[str, Any], *, optional: tuple[str, ...] = (), text: str = "") -> dict[str, Any]:
    described = {"description": text} if text else {}
    required = [name for name in properties if name not in optional]
    closed = {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}
    return {**described, **closed}


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


_STATUS = {"type": "integer", "minimum": 400, "maximum": 599}

PROBLEM = {
    "type": "object",
    "description": "Every answer of 400 and above (RFC 9457). Other members than these tell more about the code.",
    "properties": {
        "type": {"type": "string", "format": "uri", "description": "A page of this server that explains the code."},
        "title": _TEXT,
        "status": _STATUS,
        "detail": {"type": "string", "description": "What happened, in English."},
        "code": {"type": "string", "description": "What a program decides by."},
        "retry": {
            "enum": list(get_args(Retry)),
            "description": "`same_key`: repeat the call with the same idempotency key (without one: repeat it). `later`: after "
            "`Retry-After`. `new_key`: a new call with a new key. `never`: it would end the same.",
        },
        "request_id": {"type": "string", "description": "Finds the call in the operator's log."},
        "errors": {
            **_list_of(_exactly({"pointer": _TEXT, "message": _TEXT})),
            "description": "Each fault of the input with its JSON Pointer, 20 at most.",
        },
        "reason": {"type": "string", "description": "Which of the cases of the code it is."},
    },
    "required": ["type", "title", "status", "detail", "code", "retry", "request_id"],
    "additionalProperties": True,
}

PREVIEW = _exactly(
    {"status": {"const": "preview"}, "preview": _PREVIEW}, text="The answer to `dry_run`. Nothing was changed."
)
CONFIRMATION = _exactly(
    {
        "status": {"const": "confirmation_required"},
        "confirm_token": {"type": "string", "description": "The code: repeat the call with the same input and this."},
        "confirmation_id": _UUID,
        "preview": _PREVIEW,
        "expires_at": _TIME,
        "expires_in_seconds": _SECONDS,
        "reason": {
            "const": "changed",
            "description": "The values changed since the preview that a code was given for.",
        },
    },
    optional=("reason",),
    text="The call is dangerous: nothing was changed yet. It runs when it is repeated with the code.",
)
PENDING = _exactly(
    {
        "status": {"const": "pending_approval"},
        "approval_id": _UUID,
        "preview": _PREVIEW,
        "expires_at": _TIME,
        "expires_in_seconds": _SECONDS,
        "url": {"type": "string", "format": "uri", "description": "Where people decide."},
        "approvals_needed": {"type": "integer", "minimum": 1},
    },
    text="The key's writes are decided by people: nothing was changed yet. A repeat gets the same approval.",
)

_OBJECT_OR_NULL = {"type": ["object", "null"], "additionalProperties": True}
_LISTED = {
    "approval_id": _UUID,
    "tool": _TEXT,
    "status": {"enum": list(get_args(system.Status))},
    "code": _or_null({**_TEXT, "description": "The code that it failed with."}),
    "reason": _or_null({**_TEXT, "description": "Why it ended without a result, in a sentence."}),
    "created_at": _TIME,
    "expires_at": _TIME,
    "expires_in_seconds": _SECONDS,
    "approvals": _COUNT,
    "approvals_needed": _COUNT,
    "progress": _or_null({"type": "number", "minimum": 0, "maximum": 1}),
    "partial": {"description": "What the run reported so far, in the tool's own form."},
    "result": {**_OBJECT_OR_NULL, "description": "The handler's answer, once it is done."},
    "ended_at": _or_null(_TIME),
}
APPROVAL = _exactly(
    {**_LISTED, "preview": {**_PREVIEW, "type": ["object", "null"]}},
    text="What became of a write that waits for people. The preview is cleared some time after the end.",
)
_APPROVALS = _exactly({"approvals": _list_of(_exactly(_LISTED)), "next_cursor": _or_null(_TEXT)})

_LIMIT = {
    "policy": {"enum": ["key", "person", "network", "token"]},
    "budget": _COUNT,
    "window_seconds": _COUNT,
    "remaining": _COUNT,
}
_WHOAMI = _exactly(
    {
        "key": _exactly(
            {
                "id": _TEXT,
                "name": _TEXT,
                "family": _UUID,
                "requires_approval": {"type": "boolean"},
                "expires_at": _or_null(_TIME),
            }
        ),
        "scopes": _list_of(_TEXT),
        "limits": _list_of(_exactly(_LIMIT)),
    }
)
_KIND = {"code": _TEXT, "status": _STATUS, "title": _TEXT, "type": _TEXT}
_PROBLEMS = _exactly({"problems": _list_of(_exactly({**_KIND, "retry": {"enum": list(get_args(Retry))}}))})

_SCHEMA = {"type": "object", "additionalProperties": True, "description": "JSON Schema 2020-12."}
TOOLS = _exactly(
    {
        "tools": _list_of(
            _exactly(
                {
                    "name": _TEXT,
                    "title": _TEXT,
                    "description": _TEXT,
                    "scope": _or_null(_TEXT),
                    "input_schema": _SCHEMA,
                    "output_schema": {**_SCHEMA, "type": ["object", "null"]},
                    "annotations": _exactly(
                        {hint: {"type": "boolean"} for hint in ("read_only", "destructive", "idempotent", "open_world")}
                    ),
                    "danger": {"enum": ["none", "conditional", "always"]},
                    "price": _exactly(
                        {
                            "units": _COUNT,
                            "rows_per_unit": _or_null(_COUNT),
                            "declared": {"type": "boolean"},
                        }
                    ),
                }
            )
        )
    }
)
DOCUMENT = {
    "type": "object",
    "description": "An OpenAPI 3.1 document.",
    "properties": {
        "openapi": {"type": "string", "pattern": r"^3\.1\."},
        "info": {"type": "object", "additionalProperties": True},
        "paths": {"type": "object", "additionalProperties": True},
    },
    "required": ["openapi", "info", "paths"],
    "additionalProperties": True,
}

# Components by name; the document carries those that it uses.
COMPONENTS: Mapping[str, dict[str, Any]] = {
    name: limits.bounded(schema)
    for name, schema in {
        "Problem": PROBLEM,
        "Preview": PREVIEW,
        "ConfirmationRequired": CONFIRMATION,
        "PendingApproval": PENDING,
        "Approval": APPROVAL,
        "Tools": TOOLS,
    }.items()
}

# What core's own tools answer: they declare no output schema of their own.
OF_CORE: Mapping[str, dict[str, Any]] = {
    "system.whoami": limits.bounded(_WHOAMI),
    "system.problems": limits.bounded(_PROBLEMS),
    "system.get_approval": {"$ref": "#/components/schemas/Approval"},
    "system.cancel_approval": {"$ref": "#/components/schemas/Approval"},
    "system.list_approvals": limits.bounded(_APPROVALS),
}
