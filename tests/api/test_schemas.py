"""JSON Schemas of tools: plain, closed, compiled, and their faults in words (IN-2, IN-3, PR-3)."""

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from apps.api import checks, schemas
from apps.api.schemas import SchemaError
from tests.api import opinions


def second_opinion(schema: Any) -> Draft202012Validator:
    return Draft202012Validator(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)


# --- Plain ----------------------------------------------------------------------------------------------------------------------------


def test_local_references_are_put_in_their_places() -> None:
    schema = {
        "$defs": {
            "Price": {"title": "Price", "type": "object", "properties": {"of": {"$ref": "#/$defs/Sku"}}},
            "Sku": {"type": "string"},
        },
        "properties": {"a": {"$ref": "#/$defs/Price", "description": "Old"}, "b": {"items": {"$ref": "#/$defs/Sku"}}},
    }
    price = {"type": "object", "properties": {"of": {"type": "string"}}, "description": "Old"}
    assert schemas.plain(schema) == {"properties": {"a": price, "b": {"items": {"type": "string"}}}}


def test_a_property_may_be_named_like_a_word_of_schemas() -> None:
    names = ["title", "$ref", "$defs", "default", "enum", "anyOf", "properties", "discriminator", "const"]
    schema = {
        "title": "Input",
        "properties": {name: {"type": "string", "title": name.title()} for name in names},
        "patternProperties": {"title": {"title": "T", "type": "integer"}},
        "dependentRequired": {"title": ["$ref"]},
        "dependentSchemas": {"title": {"title": "T", "minProperties": 1}},
        "required": ["title"],
    }
    assert schemas.plain(schema) == {
        "properties": {name: {"type": "string"} for name in names},
        "patternProperties": {"title": {"type": "integer"}},
        "dependentRequired": {"title": ["$ref"]},
        "dependentSchemas": {"title": {"minProperties": 1}},
        "required": ["title"],
    }


def test_data_in_a_schema_stays_as_it_is() -> None:
    value = {"title": "a", "$ref": "b", "default": None}
    schema = {"const": value, "enum": [value], "default": value, "examples": [value]}
    assert schemas.plain(schema) == schema


@pytest.mark.parametrize(
    "reference",
    ["http://example.org/x.json", "file:///etc/passwd", "other.json", "#/properties/a", "#/$defs/b", "#", "#anchor"],
)
def test_a_reference_to_anything_but_a_definition_is_refused(reference: str) -> None:
    with pytest.raises(SchemaError, match="leaves the schema"):
        schemas.plain({"$defs": {"a": {}}, "properties": {"a": {"$ref": reference}}})


def test_a_type_that_contains_itself_is_refused() -> None:
    loop = {"properties": {"a": {"$ref": "#/$defs/B"}}}
    with pytest.raises(SchemaError, match="A contains itself"):
        schemas.plain(
            {"$defs": {"A": loop, "B": {"items": {"$ref": "#/$defs/A"}}}, "properties": {"x": {"$ref": "#/$defs/A"}}}
        )


# --- Closed ---------------------------------------------------------------------------------------------------------------------------


def test_the_root_is_closed_and_what_is_nested_keeps_its_own_rule() -> None:
    own = {"properties": {"a": {"type": "object"}}, "additionalProperties": True}
    assert schemas.closed(own, write=False, client_token=None) == {
        "type": "object",
        "properties": {"a": {"type": "object"}},
        "additionalProperties": False,
    }
    assert own["additionalProperties"] is True


def test_a_write_gains_the_control_fields() -> None:
    assert set(schemas.closed({}, write=True, client_token=None)["properties"]) == set(schemas.CONTROL_FIELDS)


def test_a_client_token_has_the_length_of_one() -> None:
    own = {"properties": {"visitor": {"type": "string"}}}
    visitor = schemas.closed(own, write=False, client_token="visitor")["properties"]["visitor"]
    assert visitor == {"type": "string", "minLength": 16, "maxLength": 128}


# --- Compiled -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:9/x.json"},
        {"properties": {"a": {"$ref": "file:///etc/hostname"}}},
        {"properties": {"a": {"$ref": "other.json"}}},
        {"$ref": "#/$defs/missing"},
        {"$id": "http://example.org/a", "items": {"$ref": "b"}},
        {"format": "nope"},
        {"properties": {"a": {"type": "string", "format": "binary"}}},
        {"pattern": "(?=a)"},
        {"pattern": "(?<!a)b"},
        {"pattern": r"(a)\1"},
        {"pattern": "["},
        {"patternProperties": {"(?!a)": {}}},
        {"type": "nope"},
        {"minimum": "1"},
        {"required": "a"},
    ],
)
def test_a_schema_that_is_wrong_or_looks_outside_is_not_compiled(schema: dict[str, Any]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the library's own
        schemas.compiled(schema)


# --- Faults ---------------------------------------------------------------------------------------------------------------------------

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5, "pattern": "^[a-z]*$"},
        "size": {"enum": ["s", "m"]},
        "rows": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
        },
        "when": {"type": "string", "format": "date-time"},
        "any": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "one": {"const": 1},
        "few": {"type": "array", "uniqueItems": True},
        "names": {"propertyNames": {"maxLength": 3}},
        "none": {"additionalProperties": False},
        "left": {"unevaluatedProperties": False, "properties": {}},
        "a/b~c": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "additionalProperties": False,
}


def faults(value: Any, schema: dict[str, Any] = FORM) -> list[dict[str, str]]:
    return schemas.faults(schemas.compiled(schema), value)


@pytest.mark.parametrize(
    ("value", "pointer", "message"),
    [
        ({"name": 1}, "/name", '1 is not of type "string".'),
        ({"name": "abcdef"}, "/name", "'abcdef' is longer than 5 characters."),
        ({"name": "A"}, "/name", "'A' does not match \"^[a-z]*$\"."),
        ({"size": None}, "/size", 'None is not one of "s" or "m".'),
        ({"size": [1, 2]}, "/size", 'This array is not one of "s" or "m".'),
        ({"rows": [{"n": 1}, {}]}, "/rows/1/n", "This field is required."),
        ({"rows": [{"n": {"a": 1}}]}, "/rows/0/n", 'This object is not of type "integer".'),
        ({"when": "nope"}, "/when", "'nope' is not a \"date-time\"."),
        ({"other": 1}, "/other", "This field is not allowed."),
        ({"o/t~h": 1}, "/o~1t~0h", "This field is not allowed."),
        ({"a/b~c": {"x/y": "z"}}, "/a~1b~0c/x~1y", "'z' is not of type \"integer\"."),
        ({"any": True}, "/any", "True is not valid under any of the schemas listed in the 'anyOf' keyword."),
        ({"few": [1, 1.0]}, "/few", "This array has non-unique elements."),
        ({"names": {"long": 1}}, "/names", '"long" is longer than 3 characters.'),
        ({"none": {"a": 1}}, "/none", "Nothing is allowed here."),
    ],
)
def test_a_fault_has_a_pointer_and_a_sentence(value: Any, pointer: str, message: str) -> None:
    assert faults(value) == [{"pointer": pointer, "message": message}]


def test_a_valid_value_has_no_faults() -> None:
    assert faults({"name": "a", "rows": [{"n": 1}], "any": None}) == []


@pytest.mark.parametrize("value", [{"rows": [{}] * 100}, {f"k{number}": 1 for number in range(100)}])
def test_at_most_twenty_faults_are_listed(value: Any) -> None:
    assert len(faults(value)) == schemas.MAX_FAULTS


def test_of_a_very_large_value_only_the_first_fault_is_named() -> None:
    found = faults({"rows": [{"n": 1}] * 6_000 + [{"n": "a"}, {"n": "b"}]})
    assert found == [{"pointer": "/rows/6000/n", "message": "'a' is not of type \"integer\"."}]


BIG = "x" * 1_000_000


@pytest.mark.parametrize(
    "value",
    [
        {"name": BIG},
        {"size": BIG},
        {"size": [BIG]},
        {"when": BIG},
        {"any": BIG},
        {"any": {BIG: BIG}},
        {"one": BIG},
        {"few": [BIG, BIG]},
        {"names": {BIG: 1}},
        {"none": {BIG: 1}},
        {"left": {BIG: 1}},
        {"a/b~c": {BIG: BIG}},
        {BIG: 1},
        {f"{BIG}{number}": 1 for number in range(2)},
    ],
)
def test_no_value_and_no_name_is_shown_beyond_a_hundred_characters(value: Any) -> None:
    found = faults(value)
    assert found
    assert "x" * (schemas.MAX_SHOWN + 1) not in json.dumps(found)


@pytest.mark.parametrize(
    ("path", "text"),
    [([], ""), (["a"], "/a"), ([""], "/"), (["a/b", "~", "~1", 0], "/a~1b/~0/~01/0"), (["x" * 200], f"/{'x' * 99}…")],
)
def test_pointers_are_those_of_rfc_6901(path: list[str | int], text: str) -> None:
    assert schemas.pointer(path) == text


# --- The second opinion ---------------------------------------------------------------------------------------------------------------

# Structures where both agree whatever is drawn. Formats, `multipleOf` of fractions and classes of characters have tables below.
NAMES = st.sampled_from(["a", "b", "c/d", "title"])
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -2.5])
    | st.sampled_from(["", "a", "ab", "abc", "é"])
)
INSTANCES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=8
)
TYPES = st.sampled_from(["null", "boolean", "integer", "number", "string", "array", "object"])
SMALL = st.integers(0, 3)


def _rules(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    words: dict[str, st.SearchStrategy[Any]] = {
        "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
        "enum": st.lists(INSTANCES, min_size=1, max_size=3),
        "const": INSTANCES,
        "minimum": st.integers(-2, 2),
        "exclusiveMaximum": st.sampled_from([0, 1.5]),
        "multipleOf": st.integers(1, 3),
        "minLength": SMALL,
        "maxLength": SMALL,
        "pattern": st.sampled_from(["^a", "b$", "[ab]c", "^(ab|c)*$", "a{2,3}"]),
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "contains": inner,
        "minContains": SMALL,
        "minItems": SMALL,
        "maxItems": SMALL,
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "t"]), inner, max_size=2),
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "propertyNames": inner,
        "required": st.lists(NAMES, max_size=3, unique=True),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(NAMES, inner, max_size=2),
        "minProperties": SMALL,
        "maxProperties": SMALL,
        "allOf": st.lists(inner, min_size=1, max_size=2),
        "anyOf": st.lists(inner, min_size=1, max_size=2),
        "oneOf": st.lists(inner, min_size=1, max_size=2),
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
    }
    one = st.sampled_from(sorted(words)).flatmap(lambda word: st.tuples(st.just(word), words[word]))
    return st.lists(one, max_size=4).map(dict)


SCHEMAS = st.recursive(st.booleans() | _rules(st.booleans()), _rules, max_leaves=6)


@given(SCHEMAS, st.lists(INSTANCES, min_size=1, max_size=4))
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_both_validators_agree_over_every_structure(schema: Any, values: list[Any]) -> None:
    first, second = jsonschema_rs.Draft202012Validator(schema), second_opinion(schema)
    assert [first.is_valid(value) for value in values] == [second.is_valid(value) for value in values]


def test_both_validators_agree_over_formats_but_for_the_listed_texts() -> None:
    taken, refused = set(), set()
    for name, texts in opinions.FORMATS.items():
        first, second = schemas.compiled({"format": name}), second_opinion({"format": name})
        taken |= {(name, text) for text in texts if first.is_valid(text) and not second.is_valid(text)}
        refused |= {(name, text) for text in texts if second.is_valid(text) and not first.is_valid(text)}
    assert taken == opinions.TAKEN
    assert refused == opinions.REFUSED


def test_every_format_of_the_dialect_has_its_texts() -> None:
    assert {name for name in Draft202012Validator.FORMAT_CHECKER.checkers if name != "color"} == set(opinions.FORMATS)


@pytest.mark.parametrize("name", ["iri", "iri-reference"])
def test_the_formats_that_the_second_opinion_lacks_are_declared_and_checked_all_the_same(name: str) -> None:
    assert checks._bad_schema({"type": "object", "properties": {"a": {"type": "string", "format": name}}}) is None
    rule = schemas.compiled({"format": name})
    assert (rule.is_valid("http://example.org/\xe4"), rule.is_valid("http://a b")) == (True, False)


@pytest.mark.parametrize(
    ("schema", "value", "decided"),
    [
        ({"multipleOf": 0.01}, 19.99, True),
        ({"multipleOf": 0.1}, 0.3, True),
        ({"pattern": "^a$"}, "a\n", False),
        ({"pattern": r"\d"}, "٣", False),
        ({"pattern": r"\w"}, "ä", False),
        ({"pattern": r"\s"}, "\ufeff", True),
        ({"pattern": r"^.$"}, "\r", False),
        ({"pattern": r"^.$"}, "\u2028", False),
    ],
)
def test_where_they_differ_the_hot_path_decides_as_documented(schema: Any, value: Any, decided: bool) -> None:
    assert schemas.compiled(schema).is_valid(value) is decided
    assert second_opinion(schema).is_valid(value) is not decided
