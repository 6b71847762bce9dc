"""The headers of the API, as components."""

from collections.abc import Iterable
from typing import Any

from apps.api.openapi import limits, samples

_COUNT = {"type": "integer", "format": "int64", "minimum": 1, "maximum": 86_400}


def _header(text: str, schema: dict[str, Any], example: Any) -> dict[str, Any]:
    return {"description": text, "schema": schema, "example": example}


def _text(length: int = 512, **more: Any) -> dict[str, Any]:
    return {"type": "string", "maxLength": length, **more}


COMPONENTS: dict[str, dict[str, Any]] = {
    "X-Request-ID": {
        **_header(
            "Names this request in the operator's log: the one that was sent, where it is 1 to 64 characters of `A-Za-z0-9._-`, else a "
            "new one.",
            _text(64, pattern="^[A-Za-z0-9._-]{1,64}$"),
            samples.REQUEST_ID,
        ),
        "required": True,
    },
    "RateLimit": _header(
        "What is left of each budget that this call was charged to (IETF draft 10, structured fields): `r` units, and `t` seconds until "
        "there are more. On every answer that reached the limiter.",
        _text(),
        '"key";r=599;t=60',
    ),
    "RateLimit-Policy": _header("Those budgets: `q` units in any `w` seconds.", _text(), '"key";q=600;w=60'),
    "Retry-After": _header("Seconds to wait before the call is worth repeating.", _COUNT, 2),
    "WWW-Authenticate": _header("How to authenticate.", _text(), 'Bearer realm="api"'),
    "Allow": _header("The methods that this path has.", _text(), "GET, HEAD"),
    "Idempotent-Replayed": _header(
        "There, and `true`, when this is the stored outcome of an earlier call with the same key, or an approval that was filed before.",
        {"type": "string", "enum": ["true"]},
        "true",
    ),
}

_ALWAYS = ("X-Request-ID", "RateLimit", "RateLimit-Policy")
_OF_STATUS = {
    401: ("WWW-Authenticate",),
    405: ("Allow",),
    409: ("Retry-After",),
    429: ("Retry-After",),
    503: ("Retry-After",),
}


def of(status: int, *, replayable: bool = False) -> dict[str, Any]:
    """The headers that an answer with this status may have."""
    extra = ("Idempotent-Replayed",) if replayable else ()
    return _referred((*_ALWAYS, *_OF_STATUS.get(status, ()), *extra))


def _referred(names: Iterable[str]) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A key of your own, 1 to 255 printable ASCII characters, bare or as a quoted string: a repeat with it never runs twice. "
    "The field `idempotency_key` is the same; when both are there they must agree. For example `monday-prices`.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 514, "pattern": limits.KEY_HEADER_PATTERN},
    # No `example`: readers of the document send one with every call that is tried out, and the second is refused.
}
