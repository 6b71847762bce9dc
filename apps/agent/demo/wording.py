"""Which tool a sentence means: its words against those of each tool's name, description and fields."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from apps.agent.demo import commands
from apps.agent.providers.protocol import ToolOffer

# Words that mean the same to a tool.
_ALIKE: Sequence[tuple[str, ...]] = (
    ("update", "set", "change", "raise", "increase", "lift", "lower", "reduce", "decrease", "cut", "edit", "modify"),
    ("delete", "remove", "erase", "drop", "destroy"),
    ("create", "make", "new", "insert", "register"),
    ("adjust", "add", "take"),
    ("list", "which", "show", "find", "search", "display", "many"),
    ("get", "detail", "one"),
    ("notify", "tell", "mail", "inform", "message"),
)
_MEANS = {word: group[0] for group in _ALIKE for word in group}

# A sentence with one of these wants something changed.
_CHANGING = frozenset({"update", "delete", "create", "adjust", "notify"})

_EMPTY = frozenset(
    word
    for line in (
        "a an and are as at be by can could do does for from give have i in is it its me my of on or our out please that the",
        "their them there these they this to us want was we what when where who will with would you your how all any not no",
        "more than less first top last some every",
    )
    for word in line.split()
)

UP = frozenset({"raise", "increase", "lift", "add", "up", "more"})
DOWN = frozenset({"lower", "reduce", "decrease", "cut", "drop", "take", "down", "less", "discount", "remove"})

_ASKED = re.compile(
    r"\b(?:which|what|show|list|find|search|many|display)\s+(?:(?:me|all|the|for|our|my)\s+)*([^\W\d_]{3,40})\b",
    re.IGNORECASE,
)

_MARGIN = 1.5
_ENOUGH = 3.0


def words(text: str) -> list[str]:
    """The words in lower case, without endings."""
    return [stem(word) for word in re.findall(r"[^\W\d_]+", text.lower())]


def meant(text: str) -> set[str]:
    """The words that say something, those that mean the same as one."""
    return {_MEANS.get(word, word) for word in words(text) if word not in _EMPTY}


def is_empty(word: str) -> bool:
    """Whether the word alone says nothing that could be looked for."""
    return word in _EMPTY or word in _MEANS


@lru_cache(maxsize=4_096)
def stem(word: str) -> str:
    """Roughly: plural, -ing and -ed are off."""
    for ending, instead in (("ies", "y"), ("sses", "ss"), ("ing", ""), ("ed", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return _stem_of_ing(word[: -len(ending)] + instead)
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 3 else word


def _stem_of_ing(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "ls" else word


def wants_change(text: str) -> bool:
    """Whether the sentence asks for a write."""
    return bool(meant(text) & _CHANGING)


def asked_for(text: str) -> str | None:
    """The thing that a question begins with: "chair" of "which chairs cost …"."""
    found = _ASKED.search(text)
    word = stem(found.group(1).lower()) if found else ""
    return None if not word or is_empty(word) else word


def knows(tool: ToolOffer, word: str) -> bool:
    """Whether the tool is about that anyhow."""
    return word in meant(f"{tool.name.replace('_', ' ')} {tool.description}")


def find(text: str, tools: Sequence[ToolOffer]) -> ToolOffer | None:
    """The one tool that the sentence fits clearly better than any other; None when there is none."""
    wanted = meant(text)
    ranked = sorted(
        ((_score(wanted, tool), tool.name, tool) for tool in tools), key=lambda found: (-found[0], found[1])
    )
    if not ranked or ranked[0][0] < _ENOUGH:
        return None
    if len(ranked) > 1 and ranked[0][0] - ranked[1][0] < _MARGIN and ranked[0][2].is_write:
        return None  # a change is proposed only where it is clear which one
    return ranked[0][2]


def _score(wanted: set[str], tool: ToolOffer) -> float:
    """Words of the name count most. What is asked as a question is no write, and the other way round."""
    named = meant(tool.name.replace("_", " "))
    changes = bool(wanted & _CHANGING)
    if tool.is_write and not changes:
        return 0.0
    subject = wanted - _CHANGING
    told = meant(tool.description) | meant(" ".join(_told(tool.schema)))
    touched = len(subject & (named | told))
    if not touched and not wanted & named:
        return 0.0
    verb = 4.0 if wanted & named & set(_MEANS.values()) else 0.0
    return (
        2.0 * len(subject & named)
        + 1.0 * len(subject & (told - named))
        + verb
        - (3.0 if changes and not tool.is_write else 0.0)
    )


def _told(schema: Mapping[str, Any]) -> Iterable[str]:
    """The names and examples of the fields, and of the fields of rows."""
    for name, rule in schema.get("properties", {}).items():
        if name in commands.CONTROL:
            continue
        yield name.replace("_", " ")
        yield from (one for one in (*rule.get("examples", ()), *rule.get("enum", ())) if isinstance(one, str))
        if isinstance(rule.get("items"), dict):
            yield from _told(rule["items"])
