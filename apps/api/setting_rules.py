"""How a stored setting is read: a check of its form, a default where there is no row, and what stands in for one that can't be read."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import structlog
from django.utils.functional import Promise

log = structlog.get_logger(__name__)


class Unreadable(ValueError):
    """A stored value that has not the form its name asks for."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """How one setting is read: its default, the check of a stored value, what stands in for an unreadable one, and a number's bounds."""

    default: Any
    read: Callable[[Any], Any]
    unreadable: Any
    help: str | Promise
    bounds: tuple[int, int] | None = None


def values(text: str, rules: Mapping[str, Rule]) -> dict[str, Any]:
    """Every setting of the rules out of a JSON object of rows. Never raises: what can't be read counts as its rule says."""
    try:
        rows = json.loads(text)
        if not isinstance(rows, dict):
            raise Unreadable("an object")
    except ValueError:
        log.error("settings_unreadable")
        return {name: rule.unreadable for name, rule in rules.items()}
    return {name: _value(name, rule, rows) for name, rule in rules.items()}


def _value(name: str, rule: Rule, rows: Mapping[str, Any]) -> Any:
    if name not in rows:
        return rule.default
    try:
        return rule.read(rows[name])
    except Unreadable as error:
        log.error("setting_unreadable", setting=name, wanted=str(error))
        return rule.unreadable


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Unreadable("true or false")
    return value


def names(value: Any) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise Unreadable("a list of names")
    return frozenset(value)


def whole(minimum: int, maximum: int) -> Callable[[Any], int]:
    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not minimum <= value <= maximum:
            raise Unreadable(f"a whole number from {minimum} to {maximum}")
        return value

    return read


def money(maximum: int, *, places: int = 4) -> Callable[[Any], Decimal]:
    """An amount from 0, kept as text: JSON's own numbers would lose their last digits."""

    def read(value: Any) -> Decimal:
        try:
            amount = value if isinstance(value, Decimal) else Decimal(_text(value))
            exact = amount.quantize(Decimal(1).scaleb(-places))
        except InvalidOperation:
            raise _no_money(maximum, places) from None
        if exact != amount or not 0 <= amount <= maximum:
            raise _no_money(maximum, places)
        return exact

    return read


def writing(length: int) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or len(value) > length or "\x00" in value:
            raise Unreadable(f"a text of at most {length} characters")
        return value

    return read


def stored(value: Any) -> Any:
    """A read value as the row keeps it."""
    match value:
        case frozenset():
            return sorted(value)
        case Decimal():
            return str(value)
        case _:
            return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidOperation
    return value


def _no_money(maximum: int, places: int) -> Unreadable:
    return Unreadable(f"an amount from 0 to {maximum} with at most {places} decimals, as text")
