"""JSON read and written strictly (IN-1): what another parser could read differently is refused, with its position."""

import gc
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import date, datetime, time
from decimal import Decimal
from itertools import islice
from typing import Any
from uuid import UUID

from django.utils.functional import Promise

MAX_DEPTH = 64
MAX_INT, MIN_INT = 2**63 - 1, -(2**63)

# Numbers that might leave the range: a long run of digits or an exponent. Without one, no number needs a second look.
_SUSPECT_NUMBER = re.compile(r"[0-9](?:[0-9]{17}|[eE])")
# Everything up to the first escape that makes NUL or a lone surrogate; possessive, so linear.
_GOOD_ESCAPES = re.compile(
    r"(?:[^\\]++|\\[^u]|\\u(?!0000|[dD][89a-fA-F])[0-9a-fA-F]{4}|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})*+",
    re.DOTALL,
)
_NUMBER = r"-?(?:(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|NaN|Infinity)"
_TOKEN = re.compile(rf'"(?:[^"\\]++|\\.)*+"|[\[\]{{}}]|{_NUMBER}', re.DOTALL)
_COLON = re.compile(r"[ \t\n\r]*:")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_AS_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_TOKENS_LOOKED_AT = 20_000
_MANY = 10_000


class InvalidJSON(ValueError):
    """The text is not JSON that every reader reads alike. `position` counts characters from 0; None: not looked for so far in."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.position = position


class _Fault(ValueError):
    """A fault found inside the decoder, whose position is looked up afterwards."""


def loads(data: bytes) -> Any:
    """The value of a JSON text in UTF-8. Raises InvalidJSON."""
    text = _decoded(data)
    if "\\u" in text and (end := _good_escapes(text)) < len(text):
        raise InvalidJSON("an escape that is malformed, NUL or a lone surrogate", end)
    brackets = text.count("[") + text.count("{")
    try:
        with _without_collector() if brackets > _MANY else nullcontext():
            value = (_checked if _SUSPECT_NUMBER.search(text) else _plain).decode(text)
    except json.JSONDecodeError as error:
        raise InvalidJSON(error.msg, error.pos) from None
    except _Fault as fault:
        raise InvalidJSON(str(fault), _position(text)) from None
    except RecursionError:
        raise InvalidJSON(f"more than {MAX_DEPTH} levels", _position(text)) from None
    if brackets > MAX_DEPTH and _is_deep(data):
        raise InvalidJSON(f"more than {MAX_DEPTH} levels", _position(text))
    return value


@contextmanager
def _without_collector() -> Iterator[None]:
    """A million small lists would start a dozen full collections of the process, which find nothing and cost five times the reading."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def check_value(value: object) -> str | None:
    """Why a value made in this process could not have come through `loads`; None when it could."""
    if depth(value) > MAX_DEPTH:
        return f"more than {MAX_DEPTH} levels"
    return next((reason for node in _nodes(value) if (reason := _fault_of(node))), None)


def dumps(value: object) -> bytes:
    """UTF-8 without spaces. Decimal, UUID and times become plain strings; what has no JSON form raises ValueError or TypeError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain_string)
    return text.encode()


def parts(value: object) -> Iterator[object]:
    """Every scalar and member name inside the value, in no promised order."""
    for node in _nodes(value):
        if isinstance(node, dict):
            yield from node
        elif not isinstance(node, list | tuple):
            yield node


def depth(value: object) -> int:
    """Levels of lists and objects; counting stops just above the limit."""
    level, found = [value], 0
    while (level := [part for part in level if isinstance(part, dict | list | tuple)]) and found <= MAX_DEPTH:
        found += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return found


def _decoded(data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidJSON("not UTF-8", len(data[: error.start].decode("utf-8"))) from None
    if text.startswith("\ufeff"):
        raise InvalidJSON("a byte order mark is not allowed", 0)
    return text


def _is_deep(data: bytes) -> bool:
    """Whether a valid text has too many levels: its brackets, with the innermost pairs taken away once for each level."""
    brackets = _STRING.sub(b"", data).translate(_AS_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return bool(brackets)


def _good_escapes(text: str) -> int:
    found = _GOOD_ESCAPES.match(text)
    return found.end() if found else 0


def _nodes(value: object) -> Iterator[object]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, dict):
            waiting.extend(node.values())
        elif isinstance(node, list | tuple):
            waiting.extend(node)


def _fault_of(part: object) -> str | None:
    match part:
        case dict():
            return next((reason for name in part if (reason := _name_fault(name))), None)
        case bool() | None | list() | tuple():
            return None
        case int():
            return None if MIN_INT <= part <= MAX_INT else "an integer outside 64 bits"
        case float():
            return None if part - part == 0 else "a number that is not finite"
        case str():
            return _string_fault(part)
        case _:
            return f"a value without a JSON form ({type(part).__name__})"


def _name_fault(name: object) -> str | None:
    return _string_fault(name) if isinstance(name, str) else "a member name that is no string"


def _string_fault(part: str) -> str | None:
    if "\0" in part:
        return "NUL in a string"
    try:
        part.encode()
    except UnicodeEncodeError:
        return "a lone surrogate in a string"
    return None


def _plain_string(value: object) -> str:
    match value:
        case Decimal() if value.is_finite():
            return format(value, "f")
        case UUID() | Promise():
            return str(value)
        case datetime() | date() | time():
            return value.isoformat()
        case _:
            raise TypeError(f"{type(value).__name__} has no JSON form")


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Fault("a member name occurs twice in one object")
    return found


def _constant(name: str) -> float:
    raise _Fault(f"{name} is not a number of JSON")


def _integer(text: str) -> int:
    # 19 digits and a sign hold every integer of 64 bits; longer ones are not even converted.
    if len(text) <= 20 and MIN_INT <= (number := int(text)) <= MAX_INT:
        return number
    raise _Fault("an integer outside 64 bits")


def _float(text: str) -> float:
    number = float(text)
    if number - number != 0:
        raise _Fault("a number outside double range")
    return number


_plain = json.JSONDecoder(object_pairs_hook=_members, parse_constant=_constant)
_checked = json.JSONDecoder(
    object_pairs_hook=_members, parse_constant=_constant, parse_int=_integer, parse_float=_float
)


def _position(text: str) -> int | None:
    """Where the first fault that the decoder can't place stands. Bounded work, so that a refusal takes milliseconds."""
    names: list[set[str] | None] = []
    for token in islice(_TOKEN.finditer(text), _TOKENS_LOOKED_AT):
        if _is_fault(text, token, names):
            return token.start()
    return None


def _is_fault(text: str, token: re.Match[str], names: list[set[str] | None]) -> bool:
    """A member name that repeats, a number that is none or out of range, a level too deep.

    `names` are those of the objects around; None: a list.
    """
    match token.group()[0]:
        case "[" | "{" as bracket:
            names.append(set() if bracket == "{" else None)
            return len(names) > MAX_DEPTH
        case "]" | "}":
            names.pop()
            return False
        case '"':
            return _repeats(text, token, names[-1] if names else None)
        case _:
            return _out_of_range(token.group())


def _repeats(text: str, token: re.Match[str], names: set[str] | None) -> bool:
    if names is None or not _COLON.match(text, token.end()):
        return False
    name = json.loads(token.group())
    known = name in names
    names.add(name)
    return known


def _out_of_range(token: str) -> bool:
    try:
        _float(token) if set(token) & set(".eE") else _integer(token)
    except ValueError:
        return True
    return False
