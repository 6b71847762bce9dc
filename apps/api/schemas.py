"""JSON Schemas of tools (IN-2, IN-3): made plain, closed, compiled, and the faults that a validator finds."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema_rs

MAX_FAULTS = 20
MAX_SHOWN = 100

# Stands for the value in the validator's messages, whatever its size.
_MASK = "\ue000value\ue000"
_NAMES: dict[type, str] = {dict: "object", list: "array"}

CLIENT_TOKEN_LENGTH = (16, 128)

# What a write takes besides its own input (RF-13).
CONTROL_FIELDS: dict[str, dict[str, Any]] = {
    "dry_run": {"type": "boolean", "description": "true: answer a preview and change nothing."},
}

# Names that an input of a write can't use for itself: they are the gate's, now or when confirmations come.
RESERVED = ("dry_run", "confirm_token", "idempotency_key")

Schema = Mapping[str, Any]


class SchemaError(ValueError):
    """A schema that can't be used; the message says where and why."""


def plain(schema: Schema) -> dict[str, Any]:
    """The schema with its local references put in their places, without titles, and optional fields without their null branch.

    Raises SchemaError for a reference to anything else and for a type that contains itself.
    """
    found: dict[str, Any] = _plain(schema, schema.get("$defs", {}), ())
    return found


def closed(schema: Schema, *, write: bool, client_token: str | None) -> dict[str, Any]:
    """The schema that the gate enforces: closed at the root, a write with the control fields, a client token of 16 to 128 characters."""
    properties = dict(schema.get("properties", {}))
    if client_token in properties:
        shortest, longest = CLIENT_TOKEN_LENGTH
        properties[client_token] = {"minLength": shortest, "maxLength": longest, **properties[client_token]}
    if write:
        properties |= CONTROL_FIELDS
    return {"type": "object", **schema, "properties": properties, "additionalProperties": False}


def compiled(schema: Schema) -> jsonschema_rs.Validator:
    """The validator of the hot path: no network, no files, formats checked, regexes in linear time. Raises ValueError."""
    return jsonschema_rs.Draft202012Validator(
        dict(schema),
        offline=True,
        validate_formats=True,
        ignore_unknown_formats=False,
        pattern_options=jsonschema_rs.RegexOptions(),
        mask=_MASK,
    )


def faults(validator: jsonschema_rs.Validator, value: object) -> list[dict[str, str]]:
    """At most 20 faults, each with a JSON Pointer and a sentence (PR-3). Empty: the value is valid."""
    if validator.is_valid(value):
        return []
    found: list[dict[str, str]] = []
    for error in validator.iter_errors(value):
        found.extend(_worded(error))
        if len(found) >= MAX_FAULTS:
            break
    return found[:MAX_FAULTS]


def fault(pointer: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "message": cut(message, 3 * MAX_SHOWN)}


def pointer(path: list[str | int] | tuple[str | int, ...]) -> str:
    """RFC 6901."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def cut(text: str, length: int = MAX_SHOWN) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _worded(error: jsonschema_rs.ValidationError) -> Iterator[dict[str, str]]:
    where = list(error.instance_path)
    kind: Any = error.kind
    match kind.name:
        case "additionalProperties":
            for name in kind.unexpected:
                yield fault(pointer([*where, cut(name)]), "This field is not allowed.")
        case "required":
            name = str(kind.property)
            yield fault(pointer([*where, cut(name)]), "This field is required.")
        case _:
            yield fault(pointer([cut(part) if isinstance(part, str) else part for part in where]), _sentence(error))


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    """The validator's own words, with the value in them cut to 100 characters."""
    return str(error.message).replace(_MASK, _shown(error.instance)) + "."


def _shown(value: object) -> str:
    return (
        cut(repr(value))
        if isinstance(value, str | int | float | bool) or value is None
        else f"This {_NAMES[type(value)]}"
    )


def _plain(node: Any, definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_plain(part, definitions, inside) for part in node]
    if not isinstance(node, Mapping):
        return node
    if "$ref" in node:
        return _referred(node, definitions, inside)
    found: dict[str, Any] = {}
    for name, part in node.items():
        if name in ("properties", "patternProperties", "dependentSchemas") and isinstance(part, Mapping):
            found[name] = {key: _plain(rule, definitions, inside) for key, rule in part.items()}
        elif name in ("const", "enum", "default", "examples"):
            found[name] = part
        elif name not in ("$defs", "title", "discriminator"):
            found[name] = _plain(part, definitions, inside)
    return _without_null(found)


def _referred(node: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
    reference = str(node["$ref"])
    name = reference.removeprefix("#/$defs/")
    if name == reference or name not in definitions:
        raise SchemaError(f"the reference {cut(reference)} leaves the schema")
    if name in inside:
        raise SchemaError(f"the type {name} contains itself")
    beside = {key: part for key, part in node.items() if key != "$ref"}
    return _plain({**definitions[name], **beside}, definitions, (*inside, name))


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """`X | None` as X: a caller leaves an optional field out instead of sending null."""
    branches = node.get("anyOf")
    if isinstance(branches, list) and {"type": "null"} in branches:
        others = [branch for branch in branches if branch != {"type": "null"}]
        rest = {name: part for name, part in node.items() if name != "anyOf"}
        node = {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
    if node.get("default", ...) is None:
        del node["default"]
    return node
