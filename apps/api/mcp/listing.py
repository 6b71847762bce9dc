"""A tool as `tools/list` shows it (MC-2): an underscore for the dot, four hints, schemas that every client reads."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from apps.api import schemas
from apps.api.tool import Tool

# Members of a root that clients refuse; the gate holds the input to them all the same.
_CHOICES = ("anyOf", "oneOf", "allOf")


@lru_cache(maxsize=10_000)
def describe(tool: Tool) -> Mapping[str, Any]:
    """MCP's Tool. Its texts are in the language of machines, so it is made once."""
    output = (
        {}
        if tool.is_write or tool.output_schema is None
        else {"outputSchema": _plain(tool.output_schema, of_answers=True)}
    )
    return {
        "name": tool.alias,
        "title": str(tool.title),
        "description": str(tool.description),
        "inputSchema": _plain(tool.input_schema),
        **output,
        "annotations": {
            "title": str(tool.title),
            "readOnlyHint": tool.hints["read_only"],
            "destructiveHint": tool.hints["destructive"],
            "idempotentHint": tool.hints["idempotent"],
            "openWorldHint": tool.hints["open_world"],
        },
    }


def _plain(schema: Mapping[str, Any], *, of_answers: bool = False) -> dict[str, Any]:
    """The same schema with its references inlined and an object without choices at its root.

    The fields that only a choice names are shown beside the others, none of them required.
    """
    try:
        found = schemas.plain(schema, of_answers=of_answers)
    except schemas.SchemaError:
        # It contains itself: no inlining ends. The reference is good JSON Schema, and the tool still works.
        return {"type": "object", **schema}
    branches = [branch for word in _CHOICES for branch in found.pop(word, ())]
    offered: dict[str, list[Any]] = {}
    for branch in branches:
        for name, rule in branch.get("properties", {}).items():
            offered.setdefault(name, []).append(rule)
    named = {name: rules[0] if len(rules) == 1 else {"anyOf": rules} for name, rules in offered.items()}
    return {"type": "object", **found, "properties": {**named, **found.get("properties", {})}}
