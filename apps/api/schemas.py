"""JSON Schemas of tools (IN-2, IN-3): made plain, closed, compiled, and the faults that a validator finds."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

import jsonschema_rs

from apps.api import strict_json

MAX_FAULTS = 20
MAX_SHOWN = 100

# The validator makes all errors of a value before it gives the first: of half a million wrong items that takes seconds.
_LISTED_UP_TO = 5_000

# Stands for the value in the validator's messages, whatever its size.
_MASK = "\ue000value\ue000"
_NAMES: dict[type, str] = {dict: "object", list: "array"}

CLIENT_TOKEN_LENGTH = (16, 128)

# What a write takes besides its own input (RF-13).
CONTROL_FIELDS: dict[str, dict[str, Any]] = {
    "dry_run": {"type": "boolean", "description": "true: answer a preview and change nothing."},
    "confirm_token": {
        "type": "string",
        "minLength": 1,
        "maxLength": 128,
        "description": "The code of the prompt that this call answered before; sent with the same input.",
    },
    "idempotency_key": {
        "type": "string",
        "minLength": 1,
        "maxLength": 514,
        "description": "A key of your own, 1 to 255 printable ASCII characters: a repeat with it never runs twice.",
    },
}

# Words of a schema that hold schemas by names, and those that hold data, where a "$ref" or a "title" is just a name.
NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs")
DATA = ("const", "enum", "default", "examples", "dependentRequired")
DROPPED = ("$defs", "title", "discriminator")

Schema = Mapping[str, Any]


class SchemaError(ValueError):
    """A schema that can't be used; the message says where and why."""


def plain(schema: Schema, *, of_answers: bool = False) -> dict[str, Any]:
    """The schema with its local references put in their places, without titles, and without the null branch of what defaults to None.

    `of_answers`: with it, since a tool may say null where a caller leaves a field out. Raises SchemaError for a reference to anything else
    and for a type that contains itself.
    """
    found: dict[str, Any] = _Inlining(schema.get("$defs", {}), keeps_null=of_answers).plain(schema, ())
    return found


def closed(schema: Schema, *, write: bool, replay: bool = True, client_token: str | None) -> dict[str, Any]:
    """The schema that the gate enforces: closed at the root, a write with the control fields, a client token of 16 to 128 characters."""
    properties = dict(schema.get("properties", {}))
    if client_token in properties:
        shortest, longest = CLIENT_TOKEN_LENGTH
        rule = properties[client_token]
        limits = {
            "minLength": max(shortest, rule.get("minLength", 0)),
            "maxLength": min(longest, rule.get("maxLength", longest)),
        }
        properties[client_token] = {**rule, **limits}
    if write:
        properties |= {name: rule for name, rule in CONTROL_FIELDS.items() if replay or name != "idempotency_key"}
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
    """At most 20 faults, each with a JSON Pointer and a sentence (PR-3); only the first of a very large value. Empty: it is valid."""
    if validator.is_valid(value):
        return []
    is_large = len(list(islice(strict_json.parts(value), _LISTED_UP_TO + 1))) > _LISTED_UP_TO
    errors = _first_error(validator, value) if is_large else validator.iter_errors(value)
    return list(islice(chain.from_iterable(map(_worded, errors)), MAX_FAULTS))


def fault(pointer: str, message: str) -> dict[str, str]:
    return {"pointer": pointer, "message": cut(message, 3 * MAX_SHOWN)}


def pointer(path: Iterable[str | int]) -> str:
    """RFC 6901; a long name in it is cut."""
    return "".join("/" + cut(str(part)).replace("~", "~0").replace("/", "~1") for part in path)


def cut(text: str, length: int = MAX_SHOWN) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _first_error(validator: jsonschema_rs.Validator, value: object) -> Iterator[jsonschema_rs.ValidationError]:
    try:
        validator.validate(value)
    except jsonschema_rs.ValidationError as error:
        yield error


def _worded(error: jsonschema_rs.ValidationError) -> Iterator[dict[str, str]]:
    where = list(error.instance_path)
    kind: Any = error.kind
    match kind.name:
        case "additionalProperties":
            for name in kind.unexpected:
                yield fault(pointer([*where, name]), "This field is not allowed.")
        case "required":
            yield fault(pointer([*where, kind.property]), "This field is required.")
        case "propertyNames" | "unevaluatedProperties":
            # These messages hold names that the caller made, unmasked.
            yield fault(pointer(where), f"{cut(str(error.message))}.")
        case "falseSchema":
            yield fault(pointer(where), "Nothing is allowed here.")
        case _:
            yield fault(pointer(where), _sentence(error))


def _sentence(error: jsonschema_rs.ValidationError) -> str:
    """The validator's own words, with the value in them cut to 100 characters."""
    return str(error.message).replace(_MASK, _shown(error.instance)) + "."


def _shown(value: object) -> str:
    return (
        cut(repr(value))
        if isinstance(value, str | int | float | bool) or value is None
        else f"This {_NAMES[type(value)]}"
    )


@dataclass(frozen=True)
class _Inlining:
    """References to `definitions` put in their places; `inside` are those that are being put."""

    definitions: Mapping[str, Any]
    keeps_null: bool

    def plain(self, node: Any, inside: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [self.plain(part, inside) for part in node]
        if not isinstance(node, Mapping):
            return node
        if "$ref" in node:
            return self._referred(node, inside)
        found = {name: self._member(name, part, inside) for name, part in node.items() if name not in DROPPED}
        return found if self.keeps_null else _without_null(found)

    def _member(self, name: str, part: Any, inside: tuple[str, ...]) -> Any:
        if name in DATA:
            return part
        if name in NAMED and isinstance(part, Mapping):
            return {key: self.plain(rule, inside) for key, rule in part.items()}
        return self.plain(part, inside)

    def _referred(self, node: Mapping[str, Any], inside: tuple[str, ...]) -> Any:
        reference = str(node["$ref"])
        name = reference.removeprefix("#/$defs/")
        if name == reference or name not in self.definitions:
            raise SchemaError(f"the reference {cut(reference)} leaves the schema")
        if name in inside:
            raise SchemaError(f"the type {name} contains itself")
        beside = {key: part for key, part in node.items() if key != "$ref"}
        return self.plain({**self.definitions[name], **beside}, (*inside, name))


def _without_null(node: dict[str, Any]) -> dict[str, Any]:
    """`X | None = None` as X: a caller leaves such a field out. Where null says something else than absence, it stays."""
    if node.get("default", ...) is not None:
        return node
    rest = {name: part for name, part in node.items() if name not in ("anyOf", "default")}
    others = [branch for branch in node.get("anyOf", ()) if branch != {"type": "null"}]
    if not others:
        return rest
    return {**others[0], **rest} if len(others) == 1 else {**rest, "anyOf": others}
