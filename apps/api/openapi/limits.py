"""What the gate holds every value to anyway, written into a schema, so that a client knows the bounds before it sends.

The tool's own schema is `executor.input_schema`; nothing that the gate accepts becomes invalid here.
"""

from collections.abc import Mapping
from typing import Any

from apps.api import doorway, executor, schemas, strict_json
from apps.api.handlers import MAX_RESULT
from apps.api.tool import Tool

# A body of this size holds no longer text and, with one byte and a comma each, no longer list.
MAX_TEXT, MAX_LIST = doorway.MAX_BODY, doorway.MAX_BODY // 2

# Bare, or the quoted form of the IETF draft (ID-1). In a header no space stands at an end.
_QUOTED = r'"(?:[ !#-\[\]-~]|\\["\\]){1,255}"'
KEY_PATTERN = rf"^(?:[ !#-~][ -~]{{0,254}}|{_QUOTED})$"
KEY_HEADER_PATTERN = rf"^(?:[!#-~](?:[ -~]{{0,253}}[!-~])?|{_QUOTED})$"

_TEXT_FORMATS = {"uuid": 36, "date": 10, "date-time": 64, "email": 320}


def of_input(tool: Tool) -> dict[str, Any]:
    """The schema of a call's body."""
    schema = executor.input_schema(tool)
    properties = {name: _of_field(tool, name, rule) for name, rule in schema.get("properties", {}).items()}
    found: dict[str, Any] = bounded({**schema, "properties": properties})
    return found


def bounded(schema: Any) -> Any:
    """The schema with the strict reader's bounds where it has none of its own."""
    if isinstance(schema, list):
        return [bounded(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: _member(name, part) for name, part in schema.items()}
    types = found.get("type", ())
    for kind in [types] if isinstance(types, str) else types:
        if kind in _BOUNDS and not {"const", "enum", "$ref"} & found.keys():
            found = _BOUNDS[kind](found)
    return found


def _member(name: str, part: Any) -> Any:
    if name in schemas.DATA:
        return part
    if name in schemas.NAMED and isinstance(part, Mapping):
        return {key: bounded(rule) for key, rule in part.items()}
    return bounded(part)


def _of_field(tool: Tool, name: str, rule: Any) -> Any:
    """A field at the root: rows are counted up to the tool's limit, and a key has its form."""
    if not isinstance(rule, Mapping):
        return rule
    if rule is schemas.CONTROL_FIELDS["idempotency_key"] and name == "idempotency_key":
        return {**rule, "pattern": KEY_PATTERN}
    if tool.max_items is not None and rule.get("type") == "array":
        return {**rule, "maxItems": min(tool.max_items, rule.get("maxItems", tool.max_items))}
    return rule


def _text(rule: dict[str, Any]) -> dict[str, Any]:
    return {"maxLength": _TEXT_FORMATS.get(rule.get("format", ""), MAX_TEXT), **rule}


def _list(rule: dict[str, Any]) -> dict[str, Any]:
    return {"maxItems": MAX_LIST, **rule}


def _integer(rule: dict[str, Any]) -> dict[str, Any]:
    found = {"format": "int64", **rule}
    if "exclusiveMinimum" not in found:
        found.setdefault("minimum", strict_json.MIN_INT)
    if "exclusiveMaximum" not in found:
        found.setdefault("maximum", strict_json.MAX_INT)
    return found


_BOUNDS = {"string": _text, "array": _list, "integer": _integer}

# An answer has at most as many bytes as it may have.
assert MAX_RESULT < MAX_TEXT  # noqa: S101 - so the bounds of bodies hold for answers too
