"""`/tool name key=value …`, or `/name key=value …`: a tool called by hand."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from apps.agent.providers.protocol import ToolOffer

# Nobody types these: the conversation itself previews and confirms.
CONTROL = frozenset({"dry_run", "confirm_token", "idempotency_key"})

_JSON_VALUE = re.compile(r"[\w.]+=[\[{]")
_WORD = re.compile(r"(?:\"[^\"]*\"|'[^']*'|[^\s\"'])+(?=\s|$)")


@dataclass(frozen=True, kw_only=True)
class Command:
    """The tool and its arguments."""

    tool: ToolOffer
    arguments: Mapping[str, Any]


class NotUnderstood(Exception):
    """What is wrong with the command, in words for the person."""


def is_command(text: str) -> bool:
    """Whether the person calls a tool by hand."""
    return re.match(r"/[A-Za-z]", text.strip()) is not None


def read(text: str, tools: Sequence[ToolOffer]) -> Command:
    """The command. Raises NotUnderstood."""
    words = _words(text.strip()[1:])
    if words and words[0] == "tool":
        words = words[1:]
    if not words:
        raise NotUnderstood("Name a tool after `/tool`, for example `/tool name key=value`.")
    tool = find(words[0], tools)
    if tool is None:
        raise NotUnderstood(f"There is no tool `{_plain(words[0])}` that you may use.")
    return Command(tool=tool, arguments=_arguments(words[1:], tool))


def find(name: str, tools: Sequence[ToolOffer]) -> ToolOffer | None:
    """The tool by either spelling of its name."""
    wanted = name.replace(".", "_").lower()
    return next((tool for tool in tools if tool.name.lower() == wanted), None)


def usage(tool: ToolOffer) -> str:
    """How the tool is called by hand."""
    required = set(tool.schema.get("required", ()))
    names = [name for name in properties(tool) if name in required]
    return " ".join([f"/{tool.name}", *(f"{name}=…" for name in names)])


def properties(tool: ToolOffer) -> dict[str, Mapping[str, Any]]:
    """The tool's own fields."""
    found: Mapping[str, Mapping[str, Any]] = tool.schema.get("properties", {})
    return {name: rule for name, rule in found.items() if name not in CONTROL}


def value(text: str, rule: Mapping[str, Any]) -> Any:
    """The text as the type that the field asks for; JSON where it has parts. Raises ValueError."""
    match _type(rule):
        case "integer":
            return int(text)
        case "number":
            return float(text)
        case "boolean":
            return _flag(text)
        case "array" if not text.lstrip().startswith("["):
            return [value(part.strip(), rule.get("items", {})) for part in text.split(",")]
        case "array" | "object":
            return json.loads(text)
        case _:
            return text


def _words(text: str) -> list[str]:
    """Parted at blanks, but not within quotation marks, nor within a value that is JSON: `changes=[{"sku": "LMP-0002"}]`."""
    found: list[str] = []
    rest = text.strip()
    while rest:
        named = _JSON_VALUE.match(rest)
        if named is not None:
            end = _end_of_json(rest, named.end() - 1)
            found.append(rest[:end])
        else:
            word = _WORD.match(rest)
            if word is None:
                raise NotUnderstood("A quotation mark is not closed.")
            end = word.end()
            found.append(_bare(word.group()))
        rest = rest[end:].lstrip()
    return found


def _end_of_json(text: str, start: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except ValueError:
        raise NotUnderstood(f"`{_plain(text[: start - 1])}` must be JSON that is closed.") from None


def _bare(word: str) -> str:
    """Without its quotation marks."""
    return re.sub(r"\"([^\"]*)\"|'([^']*)'", lambda part: part.group(1) or part.group(2) or "", word)


def _arguments(words: Sequence[str], tool: ToolOffer) -> dict[str, Any]:
    rules, given = properties(tool), {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise NotUnderstood(f"Write `key=value`, not `{_plain(word)}`. {_known(rules)}")
        if name not in rules:
            raise NotUnderstood(f"`{tool.name}` has no field `{_plain(name)}`. {_known(rules)}")
        try:
            given[name] = value(text, rules[name])
        except ValueError:
            raise NotUnderstood(f"`{name}` must be of the type {_type(rules[name])}.") from None
    missing = [name for name in tool.schema.get("required", ()) if name not in given]
    if missing:
        raise NotUnderstood(f"`{tool.name}` also needs {', '.join(f'`{name}`' for name in missing)}.")
    return given


def _known(rules: Mapping[str, Any]) -> str:
    return f"Its fields are {', '.join(f'`{name}`' for name in rules)}." if rules else "It has no fields."


def _type(rule: Mapping[str, Any]) -> str:
    found = rule.get("type", "string")
    return str(found if isinstance(found, str) else next((one for one in found if one != "null"), "string"))


def _flag(text: str) -> bool:
    if text.lower() in ("true", "yes", "1", "on"):
        return True
    if text.lower() in ("false", "no", "0", "off"):
        return False
    raise ValueError(text)


def _plain(text: str) -> str:
    """What the person typed, inside backquotes."""
    return text.replace("`", "'")[:100]
