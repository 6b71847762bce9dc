"""The form of Settings → API: switches, numbers, and the stored lists as boxes that are worded positively."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import registry, settings_store, switches
from apps.api.admin import settings_words as words
from apps.api.admin.settings_words import Words
from apps.api.settings_store import Changes, Stored, Toggles
from apps.api.tool import Tool


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


class SettingsForm(forms.Form):
    """`rows` are the stored rows that the operator sees; they travel in the page as `seen`, and what is wanted is told against them.

    A value that can't be read is left alone unless its `replace_…` box is ticked: what is closed because of it must not open by saving
    something else. A name that stands on a list and has no box here stays on it.
    """

    def __init__(self, data: Any = None, *, rows: Mapping[str, Any], changes: Changes | None = None) -> None:
        super().__init__(data)
        self.rows = rows
        self.stored = settings_store.present(rows)
        self.offered = {name: _offered(self.stored[name]) for name in words.LISTS}
        shown = settings_store.present(settings_store.applied(changes or {}, rows))
        for name, stored in shown.items():
            boxes = name in words.LISTS
            self.fields[_key(name)] = _boxes(stored, self.offered[name]) if boxes else _field(name, stored.value)
            if not self.stored[name].readable:
                self.fields[_replace(name)] = forms.BooleanField(
                    label=_("Replace it with what is set here"), required=False, initial=name in (changes or {})
                )

    @classmethod
    def sent(cls, data: Any) -> "SettingsForm":
        """As the operator filled it in. Raises Damaged."""
        try:
            seen = json.loads(data.get("seen", ""))
            json.dumps(seen, ensure_ascii=False).encode()
        except (ValueError, RecursionError):
            raise Damaged from None
        if not isinstance(seen, dict):
            raise Damaged
        return cls(data, rows={name: seen[name] for name in switches.RULES if name in seen})

    @property
    def seen(self) -> str:
        return json.dumps(self.rows, sort_keys=True)

    def sent_fields(self) -> list[tuple[str, str]]:
        """What was sent, for the page that asks before it is saved."""
        sent: Any = self.data
        own = {*self.fields, "seen"}
        return [(name, value) for name, values in sent.lists() if name in own for value in values]

    def wanted(self) -> dict[str, Any]:
        """What the operator changed, for the store: boxes one by one, everything else whole."""
        found = {name: self._wanted(stored) for name, stored in self.stored.items()}
        return {name: value for name, value in found.items() if value is not None}

    def access(self) -> list[Field]:
        return self._group(words.ACCESS)

    def budgets(self) -> list[Field]:
        return self._group(words.BUDGETS)

    def times(self) -> list[Field]:
        return self._group(words.TIMES)

    def people(self) -> list[Field]:
        return self._group(words.PEOPLE)

    def unreadable_lists(self) -> list[Unreadable]:
        return [found for name in words.LISTS if (found := self._unreadable(name)) is not None]

    def list_errors(self) -> list[str]:
        """Of boxes that the page did not offer."""
        return [str(error) for name in words.LISTS for error in self.errors.get(_key(name), [])]

    @cached_property
    def ticked(self) -> dict[str, frozenset[str]]:
        """By list, the names whose box is ticked."""
        return {name: frozenset(self[_key(name)].value() or ()) for name in words.LISTS}

    def _wanted(self, stored: Stored) -> Any:
        name = stored.name
        if not stored.readable and not self.cleaned_data[_replace(name)]:
            return None
        value = self._listed(name) if name in words.LISTS else self.cleaned_data[name]
        if not stored.readable:
            return sorted(value) if name in words.LISTS else value
        if value == stored.value:
            return None
        if name not in words.LISTS:
            return value
        return Toggles(added=value - stored.value, removed=stored.value - value)

    def _listed(self, name: str) -> frozenset[str]:
        """The list as it is to be: what has no box stays as it is."""
        offered, ticked = self.offered[name], frozenset(self.cleaned_data[_key(name)])
        on_it = offered - ticked if words.LISTS[name].is_closing else ticked
        return on_it | ((self.stored[name].value or frozenset()) - offered)

    def _group(self, group: Mapping[str, Words]) -> list[Field]:
        return [self._line(name, text) for name, text in group.items()]

    def _line(self, name: str, text: Words) -> Field:
        rule = switches.RULES[name]
        return Field(
            name=name,
            bound=self[name],
            unit=str(text.unit),
            default=words.value(name, rule.default),
            bounds=(words.number(rule.bounds[0]), words.number(rule.bounds[1])) if rule.bounds else None,
            is_changed=self.stored[name].value != rule.default or not self.stored[name].readable,
            unreadable=self._unreadable(name),
        )

    def _unreadable(self, name: str) -> Unreadable | None:
        if self.stored[name].readable:
            return None
        return Unreadable(
            label=words.name(name),
            stored=words.as_json(self.rows[name]),
            meanwhile=words.meanwhile(name),
            replace=self[_replace(name)],
        )


def _offered(stored: Stored) -> frozenset[str]:
    """The names that have a box: what is installed, and what stands on the list although it is not. Core's can't be closed (MT-7)."""
    modules = [module for module in registry.current().modules if module.key != "system"]
    match stored.name:
        case "api_disabled_tools":
            installed = {tool.name for tool in registry.current().tools.values() if tool.module in modules}
        case "api_session_write_modules":
            installed = {module.key for module in modules if any(_is_admin_write(tool) for tool in module.tools)}
        case _:
            installed = {module.key for module in modules}
    return frozenset(installed | (stored.value or frozenset()))


def _is_admin_write(tool: Tool) -> bool:
    return tool.is_write and tool.audience == "admin"


def _key(name: str) -> str:
    return words.LISTS[name].field if name in words.LISTS else name


def _replace(name: str) -> str:
    return f"replace_{name}"


def _boxes(stored: Stored, offered: frozenset[str]) -> forms.Field:
    """Of a list that can't be read none is ticked: closed modules are, as the gate has it, not on."""
    listed = stored.value or frozenset()
    ticked = offered - listed if words.LISTS[stored.name].is_closing else listed
    return forms.MultipleChoiceField(
        required=False,
        choices=[(name, name) for name in sorted(offered)],
        initial=[] if stored.value is None else sorted(ticked),
        error_messages={"invalid_choice": gettext("%(value)s has no box on this page.")},
    )


def _field(name: str, value: Any) -> forms.Field:
    text, rule = words.WORDS[name], switches.RULES[name]
    common: dict[str, Any] = {"label": text.label, "help_text": text.help, "initial": value}
    if rule.bounds is None:
        return forms.BooleanField(required=False, **common)
    minimum, maximum = rule.bounds
    return forms.IntegerField(min_value=minimum, max_value=maximum, **common)
