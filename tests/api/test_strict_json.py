"""JSON read and written strictly (IN-1)."""

import json
import math
import sys
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import example, given
from hypothesis import strategies as st

from apps.api import strict_json
from apps.api.strict_json import InvalidJSON

LEVELS = strict_json.MAX_DEPTH

# What the reader must take: finite doubles, integers of 64 bits, no NUL, no lone surrogates, any nesting within the limit.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(strict_json.MIN_INT, strict_json.MAX_INT)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=30)


def read(data: bytes) -> tuple[Any, InvalidJSON | None]:
    try:
        return strict_json.loads(data), None
    except InvalidJSON as error:
        return None, error


def nested(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@given(VALUES, st.booleans(), st.sampled_from([None, 2]))
def test_what_is_valid_reads_as_the_standard_library_reads_it(value: Any, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    assert repr(strict_json.loads(text.encode())) == repr(json.loads(text))


@given(VALUES)
def test_what_is_written_reads_back(value: Any) -> None:
    assert repr(strict_json.loads(strict_json.dumps(value))) == repr(value)


@given(VALUES)
def test_a_value_that_could_have_been_read_passes_the_check_of_values(value: Any) -> None:
    assert strict_json.check_value(value) is None


@given(st.binary(max_size=60))
@example(b"[NaN]]]]")
@example(b'{"a":1e400]}')
@example(b"\xed\xa0\x80")
def test_any_bytes_are_a_value_or_invalid_and_never_an_error(data: bytes) -> None:
    value, fault = read(data)
    assert strict_json.check_value(value) is None
    assert fault is None or fault.position is None or 0 <= fault.position <= len(data)


@given(st.text(alphabet='[]{}:,"\\u0dD8cCeE19.+-naNIf ', max_size=40))
def test_text_made_of_the_signs_of_json_reads_like_the_standard_library_or_not_at_all(text: str) -> None:
    value, fault = read(text.encode())
    assert fault is not None or repr(value) == repr(json.loads(text))


@pytest.mark.parametrize(
    ("data", "position", "reason"),
    [
        # Members that two readers read differently.
        (b'{"a":1,"a":2}', 7, "twice"),
        (b'{"dry_run":true,"dry_run":false}', 16, "twice"),
        (b'{"a":{"b":1,"c":[{}],"b":2}}', 21, "twice"),
        (b'[{"a":1},{"a":1,"b":"a","a":2}]', 24, "twice"),
        (rb'{"ab":1,"a\u0062":2}', 8, "twice"),
        ('{"é":"é","è":1,"é":2}'.encode(), 15, "twice"),
        (b'{"":1,"":2}', 6, "twice"),
        # Numbers.
        (b"NaN", 0, "NaN"),
        (b'{"a":["NaN",NaN]}', 12, "NaN"),
        (b"[NaN]]]]", 1, "NaN"),
        (b"[1,Infinity]", 3, "Infinity"),
        (b"[-Infinity]", 1, "-Infinity"),
        (b'{"a":1e400}', 5, "double"),
        (b"[-1E400]", 1, "double"),
        (b"[1.5,2," + b"9" * 400 + b".5]", 7, "double"),
        (b"[9223372036854775808]", 1, "64 bits"),
        (b"[-9223372036854775809]", 1, "64 bits"),
        (b'["9223372036854775808",' + b"1" * 5000 + b"]", 23, "64 bits"),
        (b"1111111111111111111111111111111.]", 0, "64 bits"),
        (b"[11111111111111111111-]]", 1, "64 bits"),
        (b"[1e400e]]", 1, "double"),
        (b"[01]", 2, "delimiter"),
        (b"[-01]", 3, "delimiter"),
        (b"[1.]", 2, "delimiter"),
        (b"[.5]", 1, "value"),
        (b"[+1]", 1, "value"),
        (b"[0x10]", 2, "delimiter"),
        (b"[1_000]", 2, "delimiter"),
        (b"[1e]", 2, "delimiter"),
        (b"[--1]", 1, "value"),
        ("[٣]".encode(), 1, "value"),
        # Strings.
        (b'["a\x00b"]', 3, "control"),
        (b'["a\nb"]', 3, "control"),
        (rb'["a\u0000b"]', 3, "NUL"),
        (rb'{"\u0000":1}', 2, "NUL"),
        (rb'["\ud800"]', 2, "surrogate"),
        (rb'["\uD83D"]', 2, "surrogate"),
        (rb'["\udc00"]', 2, "surrogate"),
        (rb'["\ude00\ud83d"]', 2, "surrogate"),
        (rb'["\ud83d\ud83d\ude00"]', 2, "surrogate"),
        (rb'["\ud83d\ude00\ude00"]', 14, "surrogate"),
        (rb'["\ud83d\n"]', 2, "surrogate"),
        (rb'["\\\ud800"]', 4, "surrogate"),
        (b'["a\xed\xa0\x80"]', 3, "UTF-8"),
        (b'["a\xed\xb8\x80\xed\xa0\xbd"]', 3, "UTF-8"),
        (rb'["\u12"]', 2, "malformed"),
        (rb'["\uZZZZ"]', 2, "malformed"),
        (rb'["\x41"]', 2, "escape"),
        (b'["a', 1, "Unterminated"),
        (b"['a']", 1, "value"),
        # The text around.
        (b'\xef\xbb\xbf{"a":1}', 0, "byte order mark"),
        (b"\xff\xfe{\x00}\x00", 0, "UTF-8"),
        ("äö".encode() + b'\xff"', 2, "UTF-8"),
        (b"\xc0\x80", 0, "UTF-8"),
        (b'{"a":1} {"a":1}', 8, "Extra"),
        (b"{}x", 2, "Extra"),
        (b"{}\x00", 2, "Extra"),
        (b"[1] // one", 4, "Extra"),
        (b"[1, /* two */ 2]", 4, "value"),
        (b"[1,]", 3, "value"),
        (b'{"a":1,}', 7, "quotes"),
        (b"{a:1}", 1, "quotes"),
        (b"{1:2}", 1, "quotes"),
        (b'{"a"}', 4, "delimiter"),
        (b"", 0, "value"),
        (b"  ", 2, "value"),
        (b"\xc2\xa0{}", 0, "value"),
        (b"undefined", 0, "value"),
        (b"True", 0, "value"),
        # Levels.
        (nested(LEVELS + 1), LEVELS, "levels"),
        (nested(990), LEVELS, "levels"),
        (b"[" * 100_000, LEVELS, "levels"),
        (b'{"a":' * 100_000, 5 * LEVELS, "levels"),
        (b'{"a":"[[","b":' + nested(LEVELS) + b"}", 14 + LEVELS - 1, "levels"),
        (nested(LEVELS) + b"]", 2 * LEVELS, "Extra"),
    ],
)
def test_a_fault_is_refused_with_its_position(data: bytes, position: int, reason: str) -> None:
    with pytest.raises(InvalidJSON) as caught:
        strict_json.loads(data)
    assert caught.value.position == position
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"-0", 0),
        (b"-0.0", -0.0),
        (b"1E+3", 1000.0),
        (b"1e-400", 0.0),
        (b"1.7976931348623157e308", sys.float_info.max),
        (b"9223372036854775807", 2**63 - 1),
        (b"-9223372036854775808", -(2**63)),
        (rb'"\\u0000"', "\\u0000"),
        (rb'"\\\\ud800"', "\\\\ud800"),
        (rb'"\ud83d\uDE00"', "😀"),
        (rb'"\u00e9"', "é"),
        ('"\ufeff\x7f\u2028"'.encode(), "\ufeff\x7f\u2028"),
        (b'{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}', {"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 1}]}),
        (b'{"A":1,"a":2,"a ":3}', {"A": 1, "a": 2, "a ": 3}),
        (b'" NaN 1e400 [[[[ "', " NaN 1e400 [[[[ "),
        (b'\r\n\t {"a"\n:\t1 } \r\n', {"a": 1}),
    ],
)
def test_what_looks_odd_but_is_json_is_read(data: bytes, value: object) -> None:
    assert repr(strict_json.loads(data)) == repr(value)


@pytest.mark.parametrize("wide", [1, 200])
def test_the_last_level_is_usable(wide: int) -> None:
    data = b"[" + b",".join([nested(LEVELS - 1)] * wide) + b"]"
    assert strict_json.depth(strict_json.loads(data)) == LEVELS


def test_brackets_in_strings_are_no_levels() -> None:
    data = json.dumps([*["[" * 70] * 3, '"]]', "\\", "{{"] * 20).encode()
    assert strict_json.loads(data) == json.loads(data)


@pytest.mark.parametrize("data", [b"[" + b"1," * 30_000 + b"NaN]", b"[" + b"1," * 30_000 + nested(LEVELS) + b"]"])
def test_a_fault_far_inside_is_refused_without_looking_for_its_position(data: bytes) -> None:
    with pytest.raises(InvalidJSON) as caught:
        strict_json.loads(data)
    assert caught.value.position is None


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (2**63, "64 bits"),
        ({"a": [-(2**63) - 1]}, "64 bits"),
        (math.nan, "finite"),
        ([math.inf], "finite"),
        ({"a": -math.inf}, "finite"),
        ("a\0b", "NUL"),
        ({"a\0": 1}, "NUL"),
        ("\ud800", "surrogate"),
        ({"\udfff": 1}, "surrogate"),
        ({1: "a"}, "no string"),
        ({None: "a"}, "no string"),
        ({"a": {True: 1}}, "no string"),
        (Decimal("1.5"), "Decimal"),
        ({"a": {1, 2}}, "set"),
        ([b"a"], "bytes"),
        ([object()], "object"),
    ],
)
def test_a_value_made_here_passes_the_same_checks(value: object, reason: str) -> None:
    assert reason in (strict_json.check_value(value) or "")


def test_a_value_that_is_deep_or_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert strict_json.check_value(circle) == f"more than {LEVELS} levels"
    assert strict_json.check_value(json.loads(nested(LEVELS + 1))) == f"more than {LEVELS} levels"
    assert strict_json.check_value(json.loads(nested(LEVELS))) is None


class Colour(StrEnum):
    RED = "red"


class Size(IntEnum):
    SMALL = 1


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("19.90"), '"19.90"'),
        (Decimal("1E+3"), '"1000"'),
        (Decimal("1E-7"), '"0.0000001"'),
        (Decimal("-0.00"), '"-0.00"'),
        (UUID("12345678-1234-5678-1234-567812345678"), '"12345678-1234-5678-1234-567812345678"'),
        (date(2026, 2, 3), '"2026-02-03"'),
        (datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC), '"2026-02-03T04:05:06+00:00"'),
        (time(4, 5), '"04:05:00"'),
        (gettext_lazy("Price"), '"Price"'),
        (Colour.RED, '"red"'),
        (Size.SMALL, "1"),
        ((1, 2), "[1,2]"),
        ({"ä": "€😀"}, '{"ä":"€😀"}'),
        ("\x00\x1f\u2028", '"\\u0000\\u001f\u2028"'),
        ("</script>", '"</script>"'),
        (1e300, "1e+300"),
    ],
)
def test_values_are_written_as_plain_json(value: object, text: str) -> None:
    assert strict_json.dumps(value).decode() == text


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        Decimal("NaN"),
        Decimal("Infinity"),
        "\ud800",
        {"\ud800": 1},
        {1, 2},
        b"bytes",
        iter([1]),
        object(),
        {UUID(int=1): 1},
        {(1, 2): 1},
        1j,
    ],
)
def test_what_has_no_json_form_is_not_written(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        strict_json.dumps(value)
