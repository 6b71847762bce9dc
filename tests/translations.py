"""The texts that people read, and their translations: `make messages` takes them out of the sources into locale/, and
`tests/test_translations.py` holds both together.

Babel reads Python, Django's own `templatize` makes Python of templates: no tool of the machine is needed.
"""

import io
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from babel.messages import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract
from babel.messages.mofile import read_mo, write_mo
from babel.messages.pofile import read_po, write_po
from django.utils.translation.template import templatize

ROOT = Path(__file__).resolve().parent.parent
LANGUAGES = ("de",)
SOURCES = ("apps", "config", "templates")
TEMPLATES = (".html", ".txt")

_KEYWORDS: dict[str, Any] = {
    **DEFAULT_KEYWORDS,
    "gettext_lazy": None,
    "ngettext_lazy": (1, 2),
    "gettext_noop": None,
    "pgettext": ((1, "c"), 2),
    "pgettext_lazy": ((1, "c"), 2),
}
_PLACEHOLDER = re.compile(r"%\(\w+\)[.\d]*[a-z]|%[sd]|\{\w*\}|<[^>]+>")
# A date that changed with each run would be noise.
_STILL = datetime(2026, 12, 1, tzinfo=UTC)


def sources(root: Path = ROOT) -> Catalog:
    """Every text of the sources, without translations."""
    found = Catalog()
    for path in _files(root):
        for text, context in _texts(path):
            found.add(text, context=context)
    return found


def stored(language: str, root: Path = ROOT) -> Catalog:
    """The translations, as people write them."""
    path = _folder(language, root) / "django.po"
    if not path.exists():
        return Catalog(locale=language)
    with path.open("rb") as file:
        return read_po(file, locale=language)


def faults(language: str, root: Path = ROOT) -> list[str]:
    """What is missing, empty, doubtful, left over, or has other placeholders than its original."""
    wanted, given = sources(root), stored(language, root)
    found = []
    for message in wanted:
        if not message.id:
            continue
        known = given.get(message.id, message.context)
        if known is None:
            found.append(f"missing: {_first(message.id)}")
        elif not all(_forms(known.string)):
            found.append(f"empty: {_first(message.id)}")
        elif known.fuzzy:
            found.append(f"fuzzy: {_first(message.id)}")
        elif any(_placeholders(form) - _placeholders("".join(_forms(message.id))) for form in _forms(known.string)) or (
            _placeholders(_forms(known.string)[-1]) != _placeholders(_forms(message.id)[-1])
        ):
            found.append(f"placeholders: {_first(message.id)}")
    return found + [
        f"left over: {_first(one.id)}" for one in given if one.id and wanted.get(one.id, one.context) is None
    ]


def is_compiled(language: str, root: Path = ROOT) -> bool:
    """Whether the file that Django reads says what people wrote."""
    path = _folder(language, root) / "django.mo"
    if not path.exists():
        return False
    with path.open("rb") as file:
        compiled = _said(read_mo(file))
    return compiled == _said(stored(language, root))


def update(language: str, root: Path = ROOT) -> None:
    """New texts come in empty, gone ones leave, and the file that Django reads is made anew."""
    given = stored(language, root)
    made = Catalog(
        locale=language,
        project="Tollhouse",
        version="1",
        msgid_bugs_address="",
        last_translator="the Tollhouse contributors",
        language_team="the Tollhouse contributors",
        copyright_holder="the Tollhouse contributors",
        creation_date=_STILL,
        revision_date=_STILL,
        fuzzy=False,
    )
    made.header_comment = "# Texts of Tollhouse and their translations. `make messages` keeps the file."
    for message in sorted(sources(root), key=lambda one: (_first(one.id).casefold(), one.context or "")):
        if message.id:
            known = given.get(message.id, message.context)
            made.add(message.id, known.string if known else None, context=message.context)
    folder = _folder(language, root)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "django.po").open("wb") as file:
        write_po(file, made, no_location=True, width=0)
    with (folder / "django.mo").open("wb") as file:
        write_mo(file, made)


def untranslated(root: Path = ROOT) -> list[str]:
    """Words that a person sees in a page and that no tag of translation holds."""
    found = []
    for path in _files(root):
        if path.suffix == ".html":
            reader = _Words()
            reader.feed(_without_translated(path.read_text()))
            found += [f"{path.relative_to(root)}: {text}" for text in reader.found]
    return found


class _Words(HTMLParser):
    """Texts and attributes with a word of two letters or more."""

    SEEN = ("title", "placeholder", "aria-label", "alt", "content")
    # Names, and what stands for keys and machines.
    NAMES = frozenset({"Tollhouse", "kbd", "JSON", "API", "curl"})

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._silent = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("code", "pre", "kbd", "style", "script")
        if tag != "meta":
            for name, value in attrs:
                if name in self.SEEN or (name.startswith("data-") and " " in (value or "").strip()):
                    self._note(value or "")

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("code", "pre", "kbd", "style", "script")

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self._note(data)

    def _note(self, text: str) -> None:
        words = [word for word in re.findall(r"[A-Za-zÀ-ÿ]{2,}", text) if word not in self.NAMES]
        if words:
            self.found.append(" ".join(text.split()))


def _without_translated(text: str) -> str:
    for pattern in (
        r"\{#.*?#\}",
        r"\{%\s*block body_class\s*%\}.*?\{%\s*endblock\s*%\}",
        r"\{%\s*comment.*?endcomment\s*%\}",
        r"\{%\s*blocktranslate.*?endblocktranslate\s*%\}",
        r"\{%.*?%\}",
        r"\{\{.*?\}\}",
    ):
        text = re.sub(pattern, "", text, flags=re.DOTALL)
    return text


def _files(root: Path) -> Iterator[Path]:
    for source in SOURCES:
        for path in sorted((root / source).rglob("*")):
            if path.suffix in (".py", *TEMPLATES) and "migrations" not in path.parts:
                yield path


def _texts(path: Path) -> Iterator[tuple[Any, str | None]]:
    text = path.read_text()
    if path.suffix in TEMPLATES:
        # Within parentheses its indentation means nothing.
        text = f"(\n{templatize(text)}\n)"
    for _, found, _, context in extract("python", io.BytesIO(text.encode()), keywords=_KEYWORDS):
        yield found, context


def _folder(language: str, root: Path) -> Path:
    return root / "locale" / language / "LC_MESSAGES"


def _forms(text: object) -> tuple[str, ...]:
    return tuple(text) if isinstance(text, tuple | list) else (str(text or ""),)


def _said(catalog: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    return {(one.context or "", *_forms(one.id)): _forms(one.string) for one in catalog if one.id}


def _first(text: object) -> str:
    return _forms(text)[0]


def _placeholders(text: str) -> set[str]:
    return set(_PLACEHOLDER.findall(text))


if __name__ == "__main__":
    for one in LANGUAGES:
        update(one)
        sys.stdout.write("".join(f"{fault}\n" for fault in faults(one)))
