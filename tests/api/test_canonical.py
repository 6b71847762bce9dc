"""When two inputs are the same (ID-1): the table that `canonical` decides by."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.api import canonical, strict_json

SAME = [
    ('{"a": 1, "b": 2}', '{"b": 2, "a": 1}'),
    ('{"a": {"x": [1, {"p": 1, "q": 2}], "y": 2}}', '{"a":{"y":2,"x":[1,{"q":2,"p":1}]}}'),
    ('{"a": 1}', '{"a": 1.0}'),
    ('{"a": 1}', '{"a": 1e0}'),
    ('{"a": 100}', '{"a": 1E+2}'),
    ('{"a": 0}', '{"a": -0.0}'),
    ('{"a": 0.0}', '{"a": -0}'),
    ('{"a": 0.1}', '{"a": 0.10}'),
    ('{"a": 0.1}', '{"a": 1e-1}'),
    ('{"a": 9007199254740992}', '{"a": 9007199254740992.0}'),
    ('{"a": 9223372036854774784}', '{"a": 9.223372036854774784e18}'),
    ('{"a": 1e300}', '{"a": 10e299}'),
    ('{"a": 1.7976931348623157e308}', '{"a": 17976931348623157e292}'),
    ('{"a": 5e-324}', '{"a": 4.9e-324}'),
    ('{"a": "\\u00e9"}', '{"a": "é"}'),
    ('{"a": "\\ud83d\\ude00"}', '{"a": "😀"}'),
    ('{"a": "\\/"}', '{"a": "/"}'),
    ('{"ä": 1, "z": 2, "\\ud83d\\ude00": 3, "\\uffff": 4}', '{"\\uffff": 4, "😀": 3, "z": 2, "\\u00e4": 1}'),
]

OTHER = [
    ('{"a": 1}', '{"a": true}'),
    ('{"a": 0}', '{"a": false}'),
    ('{"a": 1}', '{"a": "1"}'),
    ('{"a": 0.5}', '{"a": "0.5"}'),
    ('{"a": null}', "{}"),
    ('{"a": null}', '{"a": false}'),
    ('{"a": null}', '{"a": "null"}'),
    ('{"a": []}', '{"a": {}}'),
    ('{"a": []}', '{"a": [[]]}'),
    ('{"a": ""}', '{"a": []}'),
    ('{"a": [1, 2]}', '{"a": [2, 1]}'),
    ('{"a": [1, 2]}', '{"a": [12]}'),
    ('{"a": "x", "b": "y"}', '{"a": "y", "b": "x"}'),
    ('{"a": {"b": 1}}', '{"a.b": 1}'),
    ('{"a": "x"}', '{"A": "x"}'),
    ('{"a": "x"}', '{"a": "x "}'),
    ('{"a": "x"}', '{"a": "X"}'),
    ('{"a": "\\u00e9"}', '{"a": "e\\u0301"}'),  # composed and decomposed: strings count as they are
    ('{"a": "\\u212b"}', '{"a": "\\u00c5"}'),
    ('{"\\u00e9": 1}', '{"e\\u0301": 1}'),
    ('{"a": "\\\\u00e9"}', '{"a": "é"}'),
    ('{"a": "1,\\"b\\":2"}', '{"a": "1", "b": "2"}'),
    ('{"a": 9007199254740992}', '{"a": 9007199254740993}'),
    ('{"a": 9223372036854775807}', '{"a": 9223372036854775806}'),
    ('{"a": 1}', '{"a": -1}'),
    ('{"a": 1}', '{"a": 1.0000000000000002}'),
    ('{"a": 1e300}', '{"a": "1e300"}'),
    ('{"a": 1e-300}', '{"a": 0}'),
]


def digest(text: str, *, tool: str = "shop.run") -> str:
    return canonical.digest(tool, strict_json.loads(text.encode()))


@pytest.mark.parametrize(("one", "two"), SAME)
def test_the_same_input_has_one_hash(one: str, two: str) -> None:
    assert digest(one) == digest(two)


@pytest.mark.parametrize(("one", "two"), OTHER)
def test_another_input_has_another_hash(one: str, two: str) -> None:
    assert digest(one) != digest(two)


def test_the_tool_is_part_of_the_hash() -> None:
    assert digest("{}", tool="shop.run") != digest("{}", tool="shop.put")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


def _turned_round(value: Any) -> Any:
    """The same value with every object's members in the other order and whole numbers in their other form."""
    match value:
        case dict():
            return {name: _turned_round(value[name]) for name in reversed(list(value))}
        case list():
            return [_turned_round(part) for part in value]
        case bool():
            return value
        case int() if int(float(value)) == value:
            return float(value)
        case float() if value.is_integer():
            return int(value)
    return value


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=4))
def test_order_and_form_of_numbers_never_matter(value: dict[str, Any]) -> None:
    assert canonical.digest("shop.run", value) == canonical.digest("shop.run", _turned_round(value))


@given(VALUES, VALUES)
def test_what_differs_in_value_has_another_hash(one: Any, two: Any) -> None:
    same = _as_told_apart(one) == _as_told_apart(two)
    assert (canonical.digest("shop.run", {"a": one}) == canonical.digest("shop.run", {"a": two})) is same


def _as_told_apart(value: Any) -> Any:
    """Python finds `True == 1`: here each value stands beside its kind."""
    match value:
        case dict():
            return ("object", {name: _as_told_apart(part) for name, part in value.items()})
        case list():
            return ("list", [_as_told_apart(part) for part in value])
        case bool() | None | str():
            return (type(value).__name__, value)
    return ("number", value)


def test_every_process_finds_the_same_hash() -> None:
    text = '{"sku": "é", "rows": [{"b": 1.0, "a": "\\ud83d\\ude00"}], "n": 9007199254740993}'
    program = f"from apps.api import canonical, strict_json; print(canonical.digest('shop.run', strict_json.loads({text.encode()!r})))"
    found = {
        subprocess.run(
            [sys.executable, "-c", f"import django; django.setup(); {program}"],
            env={**os.environ, "PYTHONHASHSEED": seed, "DJANGO_SETTINGS_MODULE": "config.settings", "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }
    assert found == {digest(json.dumps(json.loads(text), sort_keys=True))}
