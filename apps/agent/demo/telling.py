"""Results in words, as Markdown. What a tool returned is data: nothing in it is a mark-up or an instruction here."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from apps.agent.demo import commands
from apps.agent.providers.protocol import ToolOffer

_MOST_ROWS, _MOST_COLUMNS, _MOST_TOOLS = 10, 6, 12
_LONG = 60

# How `history` and `cards` begin what is the server's word.
_SERVER, _CARD = "(Server:", "(Server: about your call"


def data(text: str) -> Any:
    """The JSON value in what the model is told of a result; None where there is none."""
    start = re.search(r"[{\[]", text)
    if start is None:
        return None
    try:
        found = json.JSONDecoder().raw_decode(text[start.start() :])[0]
    except ValueError:
        return None
    return _unwrapped(found) if isinstance(found, dict) and "outcome" in found else found


def _unwrapped(told: Mapping[str, Any]) -> Any:
    """What `results` put around a tool's own answer; None where only its beginning is there."""
    if "error" in told:
        return {"status": 0, "code": str(told["outcome"]), "detail": str(told["error"])}
    if "note" in told:
        return {"status": 0, "code": str(told["outcome"]), "detail": str(told["note"])}
    return told.get("data")


def own_words(text: str) -> str:
    """The person's text without what the server adds for the model."""
    return "\n\n".join(part for part in text.split("\n\n") if not part.startswith(_SERVER))


def decisions(text: str) -> str:
    """What became of the cards, where the last text tells nothing else; else empty."""
    if own_words(text).strip():
        return ""
    return "\n\n".join(_decision(part) for part in text.split("\n\n") if part.startswith(_CARD))


def _decision(told: str) -> str:
    value = data(told)
    if isinstance(value, dict) and "code" in value:
        return _refused(value)
    if value is not None:
        return f"Done. {result(value, tool='')}"
    if "rejected it" in told:
        return "All right: I leave it as it is."
    return "I don't know what came of it. Please look before you repeat it."


def result(value: Any, *, tool: str) -> str:
    """One sentence, and a table where there are rows."""
    if not isinstance(value, dict):
        return f"`{tool}` answered, but its answer was too long to read here." if value is None else _scalar(value)
    if value.get("status") == "confirmation_required":
        return _held(value)
    if "code" in value and isinstance(value.get("status"), int):
        return _refused(value)
    rows = _rows(value)
    return _table(*rows, value) if rows else _facts(value)


def present_values(value: Any) -> Mapping[str, Any]:
    """The object that was read, to reckon with."""
    return value if isinstance(value, dict) else {}


def help_text(tools: Sequence[ToolOffer]) -> str:
    """What could be asked."""
    if not tools:
        return "There is nothing that I may look up or change for you here."
    lines = [f"- `{commands.usage(tool)}`: {_sentence(tool.description)}" for tool in tools[:_MOST_TOOLS]]
    more = [f"- and {len(tools) - _MOST_TOOLS} more"] if len(tools) > _MOST_TOOLS else []
    return "\n".join(["I am a demo and understand simple sentences. This is what I can do:", "", *lines, *more])


def missing(tool: ToolOffer, names: Sequence[str]) -> str:
    """What the sentence did not say."""
    rules = dict(commands.properties(tool))
    for rule in list(rules.values()):
        rules.update((rule.get("items") or {}).get("properties", {}) if isinstance(rule.get("items"), dict) else {})
    lines = [f"- `{name}`: {escaped(str(rules.get(name, {}).get('description', '')))}".rstrip(": ") for name in names]
    return "\n".join(
        [f"For `{tool.name}` I also need:", "", *lines, "", f"You can write `{commands.usage(tool)}` too."]
    )


def escaped(text: str) -> str:
    """The text with every mark of Markdown made plain."""
    return re.sub(r"([\\`*_{}\[\]()<>#+!|~-])", r"\\\1", " ".join(text.split()))


def _held(value: Mapping[str, Any]) -> str:
    preview = value.get("preview")
    summary = preview.get("summary") if isinstance(preview, dict) else None
    what = f"I propose: {escaped(str(summary))}" if summary else "I propose this change."
    return f"{what}\n\nNothing has changed yet. Please look at the card, and confirm or reject it."


def _refused(value: Mapping[str, Any]) -> str:
    found = value.get("errors")
    errors = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    lines = [f"- `{one.get('pointer', '')}`: {escaped(str(one.get('message', '')))}" for one in errors]
    return "\n".join(
        [f"That was refused: {escaped(str(value.get('detail') or value['code']))}", *([""] if lines else []), *lines]
    )


def _rows(value: Mapping[str, Any]) -> tuple[str, list[Mapping[str, Any]]] | None:
    lists = [(name, part) for name, part in value.items() if isinstance(part, list)]
    if len(lists) != 1 or not all(isinstance(row, dict) for row in lists[0][1]):
        return None
    return lists[0]


def _table(name: str, rows: Sequence[Mapping[str, Any]], value: Mapping[str, Any]) -> str:
    label = name.replace("_", " ")
    count = value.get("count", value.get("total", len(rows)))
    if not rows:
        return f"I found no {label}."
    columns = _columns(rows)
    shown = rows[:_MOST_ROWS]
    if count == 1 and label.endswith("s"):
        label = label[:-1]
    is_all = count == len(shown)
    head = f"I found {count} {label}:" if is_all else f"I found {count} {label}. The first {len(shown)}:"
    lines = [
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|" + " --- |" * len(columns),
        *("| " + " | ".join(_scalar(row.get(column)) for column in columns) + " |" for row in shown),
    ]
    return "\n".join([head, "", *lines])


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The short ones; times are the last that anybody asks for."""
    names = [name for name in rows[0] if all(_is_short(row.get(name)) for row in rows) and not name.endswith("_at")]
    return names[:_MOST_COLUMNS] or list(rows[0])[:1]


def _facts(value: Mapping[str, Any]) -> str:
    lines = [
        f"- {name.replace('_', ' ')}: {_scalar(part)}"
        for name, part in value.items()
        if not isinstance(part, dict | list)
    ]
    return "\n".join(["This is the answer:", "", *lines]) if lines else "It is done."


def _scalar(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return escaped(text if len(text) <= _LONG else f"{text[:_LONG]} …")


def _is_short(value: Any) -> bool:
    return not isinstance(value, dict | list) and len(str(value)) <= _LONG


def _sentence(text: str) -> str:
    return escaped(text.partition("\n")[0].partition(". ")[0].rstrip("."))
