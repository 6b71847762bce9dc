"""What the gate holds every value to anyway, written into a schema, so that a client knows the bounds before it sends.

The tool's own schema is `executor.input_schema`; nothing that the gate accepts becomes invalid here.
"""

from collections.abc import Callable, Mapping
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

NO_NUL = r"^[^\x00]*$"

Bounds = Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]]

_TEXT_FORMATS = {"uuid": 36, "date": 10, "date-time": 64, "email": 320}


def of_input(tool: Tool) -> dict[str, Any]:
    """The schema of a call's body."""
    schema = executor.input_schema(tool)
    properties = {name: _of_field(tool, name, rule) for name, rule in schema.get("properties", {}).items()}
    found: dict[str, Any] = _bounded({**schema, "properties": properties}, _OF_INPUT)
    return found


def bounded(schema: Any) -> Any:
    """The schema of an answer with bounds where it has none of its own."""
    return _bounded(schema, _OF_OUTPUT)


def _bounded(schema: Any, bounds: Bounds) -> Any:
    if isinstance(schema, list):
        return [_bounded(part, bounds) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    found = {name: _member(name, part, bounds) for name, part in schema.items()}
    types = found.get("type", ())
    for kind in [types] if isinstance(types, str) else types:
        if kind in bounds and not {"const", "enum", "$ref"} & found.keys():
            found = bounds[kind](found)
    return found


def _member(name: str, part: Any, bounds: Bounds) -> Any:
    if name in schemas.DATA:
        return part
    if name in schemas.NAMED and isinstance(part, Mapping):
        return {key: _bounded(rule, bounds) for key, rule in part.items()}
    return _bounded(part, bounds)


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


def _text_of_input(rule: dict[str, Any]) -> dict[str, Any]:
    """The strict reader refuses NUL."""
    return _text({**({} if {"pattern", "format"} & rule.keys() else {"pattern": NO_NUL}), **rule})


def _list(rule: dict[str, Any]) -> dict[str, Any]:
    return {"maxItems": MAX_LIST, **rule}


def _integer(rule: dict[str, Any]) -> dict[str, Any]:
    found = {"format": "int64", **rule}
    if "exclusiveMinimum" not in found:
        found.setdefault("minimum", strict_json.MIN_INT)
    if "exclusiveMaximum" not in found:
        found.setdefault("maximum", strict_json.MAX_INT)
    return found


_OF_OUTPUT: Bounds = {"string": _text, "array": _list, "integer": _integer}
_OF_INPUT: Bounds = {**_OF_OUTPUT, "string": _text_of_input}

# An answer has at most as many bytes as it may have.
assert MAX_RESULT < MAX_TEXT  # noqa: S101 - so the bounds of bodies hold for answers too
