"""A value that fits a schema, the same each time: its own examples and defaults first, then the simplest one. None: none was found."""

from collections.abc import Callable, Mapping
from typing import Any

import jsonschema_rs

from apps.api import schemas
from apps.api.tool import Tool

_BY_FORMAT = {
    "uuid": "6f1c2b1e-0c0a-4d1e-9a55-0f2f3f5d7c11",
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00+00:00",
    "email": "somebody@example.org",
    "uri": "https://example.org/",
}
_TEXT = "text"


def of_input(tool: Tool) -> dict[str, Any] | None:
    """A body that the gate would accept for the tool, with the fields that must be there and those that have an example."""
    found = _object(tool.input_schema)
    return found if isinstance(found, dict) and tool.validator.is_valid(found) else None


def of_output(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """An answer of the handler, where its module says how one looks."""
    if schema is None:
        return None
    found = of(schema)
    return found if isinstance(found, dict) and jsonschema_rs.is_valid(dict(schema), found) else None


def of(schema: Any) -> Any:
    """A value for the schema; whether it fits is for the caller to check."""
    if not isinstance(schema, Mapping):
        return None
    for word in ("examples", "enum"):
        if schema.get(word):
            return schema[word][0]
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    for word in ("anyOf", "oneOf", "allOf"):
        if schema.get(word):
            return of({**{name: part for name, part in schema.items() if name != word}, **schema[word][0]})
    kind = schema.get("type", "object")
    simplest = _OF_TYPE.get(kind[0] if isinstance(kind, list) else kind)
    return None if simplest is None else simplest(schema)


def _object(schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    return {
        name: of(rule)
        for name, rule in schema.get("properties", {}).items()
        if name not in schemas.CONTROL_FIELDS
        and (name in required or (isinstance(rule, Mapping) and "examples" in rule))
    }


def _text(schema: Mapping[str, Any]) -> str:
    found = _BY_FORMAT.get(schema.get("format", ""), _TEXT)
    return found.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength", len(found) + 1000)]


def _number(schema: Mapping[str, Any]) -> Any:
    return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)


def _list(schema: Mapping[str, Any]) -> list[Any]:
    item = of(schema.get("items", {"type": "string"}))
    return [item] * max(1, schema.get("minItems", 1))


_OF_TYPE: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    "object": _object,
    "array": _list,
    "string": _text,
    "integer": _number,
    "number": _number,
    "boolean": lambda _: True,
}
