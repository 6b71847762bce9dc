"""From a handler's type hints to its input schema and back (MT-2, MT-3)."""

import dataclasses
import inspect
import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import BaseModel, Field

from apps.api import schemas, signature
from apps.api.signature import Form, SignatureError
from tests.api import postponed

DECIMAL = {"type": "string", "pattern": r"^-?[0-9]+(\.[0-9]+)?$"}


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Tag(BaseModel):
    title: str
    weight: int = 1


class Item(BaseModel):
    """One item."""

    sku: Annotated[str, Field(min_length=1, max_length=20, description="Stock number")]
    price: Decimal
    tags: list[Tag] = []
    best: Tag | None = None


@dataclasses.dataclass
class Move:
    item: Item
    to: Literal["shelf", "bin"] = "shelf"
    by: UUID | None = None


class Node(BaseModel):
    children: "list[Node]" = []


def form(function: Callable[..., Any]) -> Form:
    return signature.form_of(function, explicit=False)


def by_model(input: Item, ctx: Any) -> dict[str, Any]:
    return {"sku": input.sku}


def by_dataclass(input: Move, ctx: Any) -> dict[str, Any]:
    return {"to": input.to}


def by_keywords(
    ctx: Any,
    *,
    title: str,
    colour: Colour = Colour.RED,
    at: datetime | None = None,
    day: date | None = None,
    price: Decimal = Decimal("1.50"),
    who: UUID | None = None,
    counts: dict[str, int] | None = None,
    sizes: Annotated[list[Literal[1, 2]], Field(max_length=3)] = [],  # noqa: B006 - pydantic copies it
    share: Annotated[float, Field(ge=0, lt=1, description="From 0 to 1")] = 0.5,
) -> dict[str, Any]:
    return {"title": title}


def test_plain_annotated_arguments_make_the_schema() -> None:
    assert form(by_keywords).schema == {
        "type": "object",
        "required": ["title"],
        "properties": {
            "title": {"type": "string"},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
            "at": {"type": "string", "format": "date-time"},
            "day": {"type": "string", "format": "date"},
            "price": {**DECIMAL, "default": "1.50"},
            "who": {"type": "string", "format": "uuid"},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
            "sizes": {"type": "array", "items": {"type": "integer", "enum": [1, 2]}, "maxItems": 3, "default": []},
            "share": {
                "type": "number",
                "minimum": 0,
                "exclusiveMaximum": 1,
                "default": 0.5,
                "description": "From 0 to 1",
            },
        },
    }


def test_a_model_is_put_in_whole_with_its_nested_models_in_their_places() -> None:
    tag = {"type": "object", "properties": {"title": {"type": "string"}, "weight": {"type": "integer", "default": 1}}}
    tag["required"] = ["title"]
    assert form(by_model).schema == {
        "type": "object",
        "description": "One item.",
        "required": ["sku", "price"],
        "properties": {
            "sku": {"type": "string", "minLength": 1, "maxLength": 20, "description": "Stock number"},
            "price": DECIMAL,
            "tags": {"type": "array", "items": tag, "default": []},
            "best": tag,
        },
    }


def test_a_dataclass_makes_the_schema() -> None:
    schema = form(by_dataclass).schema
    assert schema["required"] == ["item"]
    assert schema["properties"]["to"] == {"type": "string", "enum": ["shelf", "bin"], "default": "shelf"}
    assert schema["properties"]["by"] == {"type": "string", "format": "uuid"}
    assert schema["properties"]["item"]["properties"]["best"]["properties"]["title"] == {"type": "string"}


@pytest.mark.parametrize(
    "function", [by_model, by_dataclass, by_keywords, postponed.by_model, postponed.by_dataclass, postponed.by_keywords]
)
def test_a_schema_has_no_references_and_compiles(function: Callable[..., Any]) -> None:
    schema = form(function).schema
    assert "$ref" not in json.dumps(schema)
    assert "$defs" not in json.dumps(schema)
    assert schemas.compiled(schemas.closed(schema, write=True, client_token=None))


def test_null_stays_where_it_says_something_else_than_absence() -> None:
    def handler(
        ctx: Any, *, a: int | None, b: list[int | None], c: int | None = 5, d: int | str | None = None
    ) -> None: ...

    assert form(handler).schema["properties"] == {
        "a": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "b": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
        "c": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 5},
        "d": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
    }


def test_annotations_that_are_texts_work_in_all_forms() -> None:
    assert form(postponed.by_model).schema["properties"]["lines"]["items"]["properties"]["price"] == DECIMAL
    assert form(postponed.by_dataclass).schema["properties"]["limit"] == {"type": "integer", "default": 20}
    assert form(postponed.by_keywords).schema["properties"]["line"]["properties"]["sku"] == {"type": "string"}
    assert form(postponed.late_context).schema["required"] == ["query"]


def call(function: Callable[..., Any], value: dict[str, Any]) -> Any:
    return signature.invoke(function, form(function).typed(value), object())


def test_arguments_arrive_as_the_types_that_the_handler_names() -> None:
    def handler(ctx: Any, *, price: Decimal, who: UUID, at: datetime, colour: Colour, count: int) -> tuple[Any, ...]:
        return price, who, at, colour, count

    uuid = "12345678-1234-5678-1234-567812345678"
    given = {"price": "0.10", "who": uuid, "at": "2026-02-03T04:05:06Z", "colour": "blue", "count": 2.0}
    price, who, at, colour, count = call(handler, given)
    assert (price, who, colour, count) == (Decimal("0.10"), UUID(uuid), Colour.BLUE, 2)
    assert type(count) is int
    assert at.isoformat() == "2026-02-03T04:05:06+00:00"


def test_an_async_handler_is_awaited() -> None:
    assert call(postponed.by_keywords, {"query": "a"}) == {"query": "a", "line": None}


def test_a_handler_in_one_form_may_have_a_preview_in_the_other() -> None:
    def preview(ctx: Any, *, sku: str, price: Decimal, tags: list[Tag], best: Tag | None) -> str:
        return sku

    typed = form(by_model).typed({"sku": "a", "price": "1"})
    assert signature.invoke(preview, typed, object()) == "a"
    assert signature.invoke(lambda given, ctx: given.title, form(by_keywords).typed({"title": "b"}), object()) == "b"


def test_a_mutable_default_is_never_shared() -> None:
    def handler(ctx: Any, *, names: list[str] = []) -> list[str]:  # noqa: B006
        names.append("a")
        return names

    assert call(handler, {}) == ["a"]
    assert call(handler, {}) == ["a"]


def test_a_field_may_have_the_name_of_a_method_or_of_a_word_of_schemas() -> None:
    def handler(ctx: Any, *, copy: int, json: int, schema: int, title: str, type: str, self: int) -> Any:
        return [copy, json, schema, title, type, self]

    names = ["copy", "json", "schema", "title", "type", "self"]
    assert list(form(handler).schema["properties"]) == names
    assert call(handler, {"copy": 1, "json": 2, "schema": 3, "title": "t", "type": "u", "self": 4}) == [
        1,
        2,
        3,
        "t",
        "u",
        4,
    ]


def test_with_an_explicit_schema_the_handler_gets_the_object_as_a_dict_of_its_own() -> None:
    explicit = signature.form_of(lambda given, ctx: given, explicit=True)
    value = {"a": 1}
    given = signature.invoke(lambda given, ctx: given, explicit.typed(value), object())
    assert given == value
    assert given is not value
    assert signature.invoke(lambda ctx, *, a: a, explicit.typed(value), object()) == 1


def no_arguments() -> None: ...


def positional(ctx: Any, query: str = "") -> None: ...


def untyped(ctx: Any, *, query="") -> None: ...  # type: ignore[no-untyped-def]


def starred(ctx: Any, **query: str) -> None: ...


def bare_dict(input: dict[str, Any], ctx: Any) -> None: ...


def untyped_model(input, ctx: Any) -> None: ...  # type: ignore[no-untyped-def]


def recursive(input: Node, ctx: Any) -> None: ...


def no_json_form(ctx: Any, *, made: inspect.Signature) -> None: ...


def function_field(ctx: Any, *, rule: Callable[[], int]) -> None: ...


def look_around(ctx: Any, *, text: Annotated[str, Field(pattern="(?=a)")]) -> None: ...


def private_name(ctx: Any, *, _query: str) -> None: ...


def reserved_name(ctx: Any, *, model_config: str) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (no_arguments, ["f(ctx, *, name: type = …)"]),
        (positional, ["query", "after the *"]),
        (untyped, ["query", "have a type"]),
        (starred, ["query", "after the *"]),
        (bare_dict, ["input_schema"]),
        (untyped_model, ["input_schema"]),
        (recursive, ["Node contains itself", "input_schema"]),
        (no_json_form, ["Signature", "input_schema"]),
        (function_field, ["JSON", "input_schema"]),
        (look_around, ["text", "input_schema"]),
        (private_name, ["_query", "Rename"]),
        (reserved_name, ["model_config", "Rename"]),
        (postponed.unknown_type, ["'Context' is not defined", "top of a module"]),
    ],
)
def test_another_form_is_refused_by_a_message_that_names_function_and_mend(
    function: Callable[..., Any], words: list[str]
) -> None:
    with pytest.raises(SignatureError) as caught:
        form(function)
    assert all(word in str(caught.value) for word in [function.__name__, *words])
