"""The form of a page of settings: switches, numbers, amounts and texts, told against the stored rows that the operator sees."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, ClassVar, Self

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext_lazy as _

from apps.api import settings_store
from apps.api.admin import setting_words
from apps.api.admin.setting_words import Vocabulary
from apps.api.setting_rules import Unreadable as CantBeRead
from apps.api.settings_store import Book, Changes, Stored


class Damaged(ValueError):
    """What was sent does not come from the page: it does not say what the operator saw."""


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """What stands beside a stored value that can't be read."""

    label: str
    stored: str
    meanwhile: str
    replace: BoundField


@dataclass(frozen=True, kw_only=True)
class Field:
    """A switch or a number as the template lays it out."""

    name: str
    bound: BoundField
    unit: str
    default: str
    bounds: tuple[str, str] | None
    is_changed: bool
    unreadable: Unreadable | None
    is_text: bool = False


class SettingSheet(forms.Form):
    """`rows` are the stored rows that the operator sees; they travel in the page as `seen`, and what is wanted is told against them.

    A value that can't be read is left alone unless its `replace_…` box is ticked: what is closed because of it must not open by saving
    something else.
    """

    book: ClassVar[Book]
    vocabulary: ClassVar[Vocabulary]

    def __init__(self, data: Any = None, *, rows: Mapping[str, Any], changes: Changes | None = None) -> None:
        super().__init__(data)
        self.rows = rows
        self.stored = settings_store.present(rows, book=self.book)
        shown = settings_store.present(settings_store.applied(changes or {}, rows), book=self.book)
        for name, stored in shown.items():
            self.fields[self.key(name)] = self.made(stored)
            if not self.stored[name].readable:
                self.fields[_replace(name)] = forms.BooleanField(
                    label=_("Replace it with what is set here"), required=False, initial=name in (changes or {})
                )

    @classmethod
    def sent(cls, data: Any) -> Self:
        """As the operator filled it in. Raises Damaged."""
        try:
            seen = json.loads(data.get("seen", ""))
            json.dumps(seen, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise Damaged from None
        if not isinstance(seen, dict):
            raise Damaged
        return cls(data, rows={name: seen[name] for name in cls.book.rules if name in seen})

    @property
    def seen(self) -> str:
        return json.dumps(self.rows, sort_keys=True)

    def sent_fields(self) -> list[tuple[str, str]]:
        """What was sent, for the page that asks before it is saved."""
        sent: Any = self.data
        own = {*self.fields, "seen"}
        return [(name, value) for name, values in sent.lists() if name in own for value in values]

    def clean(self) -> dict[str, Any]:
        """By the very rules that the values are read by."""
        found: dict[str, Any] = super().clean() or {}
        for name in [name for name in found if name in self.book.rules]:
            try:
                self.book.rules[name].read(found[name])
            except CantBeRead:
                self.add_error(name, _("This can't be stored."))
        return found

    def wanted(self) -> dict[str, Any]:
        """What the operator changed, for the store: boxes one by one, everything else whole."""
        found = {name: self.wanted_of(stored) for name, stored in self.stored.items()}
        return {name: value for name, value in found.items() if value is not None}

    def key(self, name: str) -> str:
        """The form's name of a setting."""
        return name

    def made(self, stored: Stored) -> forms.Field:
        """The form's field of a setting."""
        text, rule = self.vocabulary.words[stored.name], self.book.rules[stored.name]
        value = rule.default if stored.value is None else stored.value
        common: dict[str, Any] = {"label": text.label, "help_text": text.help, "initial": value}
        if isinstance(rule.default, str):
            # Line breaks come as two characters from a browser and are counted by the rule.
            area = forms.Textarea(attrs={"rows": 6, "cols": 80, "class": "vLargeTextField"})
            return forms.CharField(required=False, strip=True, widget=area, **common)
        if rule.bounds is None:
            return forms.BooleanField(required=False, **common)
        minimum, maximum = rule.bounds
        if isinstance(rule.default, Decimal):
            common["initial"] = f"{value.normalize():f}"
            return forms.DecimalField(min_value=minimum, max_value=maximum, decimal_places=4, **common)
        return forms.IntegerField(min_value=minimum, max_value=maximum, **common)

    def wanted_of(self, stored: Stored) -> Any:
        """What is wanted of a setting; None where it is to stay as it is."""
        if not self.may_change(stored):
            return None
        value = self.cleaned_data[stored.name]
        if isinstance(value, str):
            value = value.replace("\r\n", "\n")
        return None if stored.readable and value == stored.value else value

    def may_change(self, stored: Stored) -> bool:
        return bool(stored.readable or self.cleaned_data[_replace(stored.name)])

    def group(self, names: Mapping[str, Any]) -> list[Field]:
        """The settings of a section."""
        return [self._line(name) for name in names]

    def unreadable(self, name: str) -> Unreadable | None:
        if self.stored[name].readable:
            return None
        return Unreadable(
            label=self.name_of(name),
            stored=setting_words.as_json(self.rows[name]),
            meanwhile=self.meanwhile(name),
            replace=self[_replace(name)],
        )

    def name_of(self, name: str) -> str:
        return self.vocabulary.name(name)

    def meanwhile(self, name: str) -> str:
        return self.vocabulary.meanwhile(name)

    def _line(self, name: str) -> Field:
        rule = self.book.rules[name]
        number = setting_words.number
        return Field(
            name=name,
            bound=self[name],
            unit=str(self.vocabulary.words[name].unit),
            default=self.vocabulary.said(name, rule.default),
            bounds=(number(rule.bounds[0]), number(rule.bounds[1])) if rule.bounds else None,
            is_changed=self.stored[name].value != rule.default or not self.stored[name].readable,
            unreadable=self.unreadable(name),
            is_text=isinstance(rule.default, str),
        )


def _replace(name: str) -> str:
    return f"replace_{name}"
