"""`walk.go` writes a row, reports what it is told to, and stops at a gate of the test. `walk.look` and, for visitors, `walk.gaze` read."""

from typing import Any

import structlog

from apps.api import Context, Module, ToolError, preview
from apps.api.models import KeyFamily
from tests.api.once import stand_at
from tests.api.probe import CHANGE, READ, VIEW, WRITE

log = structlog.get_logger(__name__)

module = Module(key="walk", name="Walk", problems={"walk_refused": (409, "Refused")})

# What is no progress and breaks nothing, by name.
ODD: dict[str, Any] = {
    "no form": object(),
    "not a number": float("nan"),
    "endless": {"done": float("inf"), "total": 10**400},
    "huge": 10**400,
    "a switch": True,
    "odd words": {"done": 1, "message": "a\ud800b\x00"},
    "no words": {"done": 2, "message": 5, "total": "many"},
}

_GIVEN: dict[str, Any] = {
    "type": "object",
    "properties": {
        "first": {"type": "array", "maxItems": 20},
        "then": {"type": "array", "maxItems": 20},
        "many": {"type": "integer"},
        "odd": {"type": "boolean"},
        "gate": {"type": "string"},
        "end": {"enum": ["refuse", "break", "leave"]},
    },
}


@module.tool("walk.go", scope=WRITE, permission=CHANGE, input_schema=_GIVEN)
def go(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Walks."""
    family = KeyFamily.objects.create()
    _walk(given, ctx)
    return {"family": family.pk, "text": "a\nb \u2028 c"}


@go.preview
def preview_go(given: dict[str, Any], ctx: Context) -> Any:
    for report in given.get("first", ()):
        ctx.progress(report)
    return preview("Walk."), "always the same"


@module.tool("walk.look", scope=READ, permission=VIEW, input_schema=_GIVEN, annotations={"read_only": True})
def look(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """Looks around."""
    _walk(given, ctx)
    return {"seen": True}


@module.tool("walk.gaze", audience="public", input_schema=_GIVEN, annotations={"read_only": True})
def gaze(given: dict[str, Any], ctx: Context) -> dict[str, Any]:
    """What everybody may see."""
    _walk(given, ctx)
    return {"seen": True}


def _walk(given: dict[str, Any], ctx: Context) -> None:
    log.info("walking")
    for report in (*given.get("first", ()), *(ODD.values() if given.get("odd") else ())):
        ctx.progress(report)
    stand_at(given.get("gate", ""), "here", "here")
    for number in range(given.get("many", 0)):
        ctx.progress({"done": number + 1, "total": given["many"]})
    for report in given.get("then", ()):
        ctx.progress(report)
    match given.get("end"):
        case "refuse":
            raise ToolError("walk_refused", "Refused.")
        case "break":
            raise RuntimeError("broken")
        case "leave":
            raise KeyboardInterrupt
