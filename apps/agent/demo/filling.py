"""The arguments of a tool out of a sentence, by the tool's schema alone: examples, patterns, enumerations, types and names of fields."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from apps.agent.demo import commands, wording
from apps.agent.providers.protocol import ToolOffer

_TOKEN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*[A-Za-z0-9]|[A-Za-z0-9]")
_QUOTED = re.compile(r"[\"“„']([^\"“”„']{1,200})[\"”“']")
_NUMBER = r"(-?\d+(?:[.,]\d+)?)"
_PERCENT = re.compile(_NUMBER + r"\s*(?:%|per ?cent\b)", re.IGNORECASE)
_TO = re.compile(r"\bto\s+(?:[€$£]\s*)?" + _NUMBER, re.IGNORECASE)
_BY = re.compile(r"\bby\s+(?:[€$£]\s*)?" + _NUMBER, re.IGNORECASE)
_LEAST = re.compile(r"\b(?:over|above|at least|more than|from)\s+(?:[€$£]\s*)?" + _NUMBER, re.IGNORECASE)
_MOST = re.compile(r"\b(?:under|below|at most|less than|cheaper than|up to)\s+(?:[€$£]\s*)?" + _NUMBER, re.IGNORECASE)
_CALLED = re.compile(r"\b(?:called|named|like|about)\s+([^\W_][\w-]{1,60})", re.IGNORECASE)
_FIRST = re.compile(r"\b(?:first|top)\s+(\d+)\b", re.IGNORECASE)
_ANY = re.compile(_NUMBER)


@dataclass(kw_only=True)
class Filled:
    """What was found. `missing` names the required fields that the sentence does not give."""

    arguments: dict[str, Any] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    # A number of each row that only says by how much it changes: what it is now has to be read first.
    relative: str | None = None


def fill(text: str, tool: ToolOffer, known: Mapping[str, Mapping[str, Any]]) -> Filled:
    """The arguments. `known` has what was read meanwhile, by what names a row: its present values."""
    rows = row_field(tool)
    if rows is None:
        is_searched = "query" in commands.properties(tool)
        filled = _flat(_QUOTED.sub(" ", text) if is_searched else text, tool.schema, known)
        _leave_a_query(text, tool, filled)
        return filled
    name, rule = rows
    named = identifiers(text, rule["items"])
    if not named:
        return Filled(missing=[name])
    found = [_flat(text, rule["items"], known, named=one) for one in named]
    relative = next((one.relative for one in found if one.relative), None)
    missing = sorted({one for filled in found for one in filled.missing})
    return Filled(arguments={name: [filled.arguments for filled in found]}, missing=missing, relative=relative)


def row_field(tool: ToolOffer) -> tuple[str, Mapping[str, Any]] | None:
    """The required list of objects, where the tool takes rows."""
    required = tool.schema.get("required", ())
    for name, rule in commands.properties(tool).items():
        items = rule.get("items")
        if (
            name in required
            and rule.get("type") == "array"
            and isinstance(items, dict)
            and items.get("type") == "object"
        ):
            return name, rule
    return None


def key_of(schema: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """The field that names a thing: the first required one with a pattern or a format whose examples have digits."""
    for name in schema.get("required", ()):
        rule = schema.get("properties", {}).get(name, {})
        one = rule.get("items", rule) if rule.get("type") == "array" else rule
        if _names_a_thing(one):
            return name, one
    return None


def identifiers(text: str, schema: Mapping[str, Any]) -> list[str]:
    """What the sentence names, each once, in its order."""
    key = key_of(schema)
    if key is None:
        return []
    tokens = [token for token in _TOKEN.findall(text) if _is_name(token, key[1])]
    return list(dict.fromkeys(tokens))


def amount(text: str) -> Decimal | None:
    """The number that something is set to."""
    found = _TO.search(text)
    return None if found is None else _decimal(found.group(1))


def changed(text: str, before: Decimal) -> Decimal | None:
    """What the number becomes that the sentence changes by so much, or by so many per cent."""
    said = set(wording.words(text))
    sign = -1 if said & wording.DOWN else 1
    percent, by = _PERCENT.search(text), _BY.search(text)
    if percent is not None:
        return before + sign * before * _decimal(percent.group(1)) / 100
    return None if by is None else before + sign * _decimal(by.group(1))


def is_relative(text: str) -> bool:
    """Whether the sentence says by how much."""
    return amount(text) is None and bool(_PERCENT.search(text) or _BY.search(text))


def _flat(
    text: str, schema: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], named: str | None = None
) -> Filled:
    filled, required = Filled(), schema.get("required", ())
    key = key_of(schema)
    for name, rule in schema.get("properties", {}).items():
        if name in commands.CONTROL:
            continue
        found = _key_value(text, rule, named) if key and name == key[0] else _one(text, name, rule)
        if found is None and name in required and _is_number(rule):
            found = _number(text, name, rule, known.get(named or "", {}))
            if found is None and is_relative(text):
                filled.relative = name
        if found is not None:
            filled.arguments[name] = found
        elif name in required:
            filled.missing.append(name)
    return filled


def _key_value(text: str, rule: Mapping[str, Any], named: str | None) -> Any:
    if named is not None:
        return named
    one = rule.get("items", rule) if rule.get("type") == "array" else rule
    found = [token for token in dict.fromkeys(_TOKEN.findall(text)) if _is_name(token, one)]
    if rule.get("type") == "array":
        return found or None
    return found[0] if found else None


def _one(text: str, name: str, rule: Mapping[str, Any]) -> Any:
    """A field that is no number to be set: by its enumeration, its examples, its bounds, or its words."""
    kind = rule.get("type")
    if kind == "boolean":
        return _flag(text, name)
    if name.startswith(("min_", "max_")):
        found = (_LEAST if name.startswith("min_") else _MOST).search(text)
        return None if found is None else _typed(_decimal(found.group(1)), rule)
    if name == "limit":
        found = _FIRST.search(text)
        return None if found is None else min(int(found.group(1)), int(rule.get("maximum", 100)))
    if kind == "string" and not _is_number(rule):
        return _word(text, name, rule)
    return None


def _flag(text: str, name: str) -> bool | None:
    """`in_stock`: "in stock" is true, "out of stock" and "not in stock" are false."""
    parts = [wording.stem(part) for part in name.lower().split("_") if part not in ("is", "has")]
    said = " ".join(re.findall(r"[^\W\d_]+", text.lower()))
    noun, phrase = re.escape(parts[-1]), r"\s+".join(map(re.escape, parts))
    if re.search(rf"\b(?:out of|no|without|un|not(?: \w+)?)\s*(?:{phrase}|{noun})", said):
        return False
    return True if re.search(rf"\b{phrase}", said) else None


def _word(text: str, name: str, rule: Mapping[str, Any]) -> str | None:
    said = set(wording.words(text))
    for choice in (*rule.get("enum", ()), *rule.get("examples", ())):
        if (
            isinstance(choice, str)
            and not re.search(r"\d", choice)
            and set(wording.words(choice))
            and set(wording.words(choice)) <= said
        ):
            return choice
    found = re.search(rf"\b{re.escape(name)}\s*[:=]\s*(\S{{1,200}})", text, re.IGNORECASE)
    return found.group(1) if found else None


def _number(text: str, name: str, rule: Mapping[str, Any], now: Mapping[str, Any]) -> Any:
    """What the field is set to. One that is itself a change takes the number of the sentence, with its sign."""
    if wording.stem(name) in ("delta", "change", "adjustment"):
        found = _ANY.search(_without_names(text))
        sign = -1 if set(wording.words(text)) & wording.DOWN else 1
        return None if found is None else _typed(sign * abs(_decimal(found.group(1))), rule)
    to = amount(text)
    if to is None and name in now:
        try:
            to = changed(text, Decimal(str(now[name])))
        except InvalidOperation:
            to = None
    return None if to is None else _typed(to, rule)


def _leave_a_query(text: str, tool: ToolOffer, filled: Filled) -> None:
    """What is quoted, or a name that no other field took, is what a list is searched for."""
    if "query" not in commands.properties(tool) or "query" in filled.arguments:
        return
    found = _QUOTED.search(text) or _CALLED.search(text)
    if found and not wording.is_empty(wording.stem(found.group(1).lower())):
        filled.arguments["query"] = found.group(1)
        return
    asked = wording.asked_for(text)
    taken = {one for value in filled.arguments.values() for one in wording.words(str(value))}
    if asked is not None and asked not in taken and not wording.knows(tool, asked):
        filled.arguments["query"] = asked


def _names_a_thing(rule: Mapping[str, Any]) -> bool:
    if rule.get("format") == "uuid":
        return True
    shown = [str(one) for one in rule.get("examples", ())]
    return rule.get("type") == "string" and not _is_number(rule) and any(re.search(r"\d", one) for one in shown)


def _is_name(token: str, rule: Mapping[str, Any]) -> bool:
    if rule.get("format") == "uuid":
        return re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", token) is not None
    has_both = re.search(r"\d", token) and re.search(r"[A-Za-z]", token)
    return bool(has_both) and re.search(rule.get("pattern", ""), token) is not None


def _is_number(rule: Mapping[str, Any]) -> bool:
    """Also an amount, which is a text of digits."""
    if rule.get("type") in ("integer", "number"):
        return True
    pattern = str(rule.get("pattern", ""))
    return (
        bool(pattern)
        and re.search(pattern, "19.90") is not None
        and re.search(pattern, "lamp") is None
        and re.search(pattern, "A1") is None
    )


def _typed(number: Decimal, rule: Mapping[str, Any]) -> Any:
    if rule.get("type") == "integer":
        return int(number.quantize(Decimal(1), ROUND_HALF_UP))
    if rule.get("type") == "number":
        return float(number)
    return str(number.quantize(Decimal("0.01"), ROUND_HALF_UP))


def _decimal(text: str) -> Decimal:
    return Decimal(text.replace(",", "."))


def _without_names(text: str) -> str:
    return " ".join(token for token in text.split() if not (re.search(r"\d", token) and re.search(r"[A-Za-z]", token)))
