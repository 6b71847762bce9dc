"""The form of Settings → API: switches, numbers, and the stored lists as boxes that are worded positively."""

from functools import cached_property
from typing import Any

from django import forms
from django.utils.translation import gettext

from apps.api import registry, settings_store
from apps.api.admin import settings_words as words
from apps.api.admin.setting_sheet import Damaged, Field, SettingSheet, Unreadable
from apps.api.settings_store import Stored, Toggles
from apps.api.tool import Tool

__all__ = ["Damaged", "Field", "SettingsForm", "Unreadable"]


class SettingsForm(SettingSheet):
    """A name that stands on a list and has no box here stays on it."""

    book = settings_store.API
    vocabulary = words.PLAIN

    def __init__(self, data: Any = None, *, rows: Any, changes: Any = None) -> None:
        stored = settings_store.present(rows)
        self.offered = {name: _offered(stored[name]) for name in words.LISTS}
        super().__init__(data, rows=rows, changes=changes)

    def key(self, name: str) -> str:
        return words.LISTS[name].field if name in words.LISTS else name

    def made(self, stored: Stored) -> forms.Field:
        if stored.name in words.LISTS:
            return _boxes(stored, self.offered[stored.name])
        return super().made(stored)

    def name_of(self, name: str) -> str:
        return words.name(name)

    def meanwhile(self, name: str) -> str:
        return words.meanwhile(name)

    def access(self) -> list[Field]:
        return self.group(words.ACCESS)

    def budgets(self) -> list[Field]:
        return self.group(words.BUDGETS)

    def times(self) -> list[Field]:
        return self.group(words.TIMES)

    def people(self) -> list[Field]:
        return self.group(words.PEOPLE)

    def unreadable_lists(self) -> list[Unreadable]:
        return [found for name in words.LISTS if (found := self.unreadable(name)) is not None]

    def list_errors(self) -> list[str]:
        """Of boxes that the page did not offer."""
        return [str(error) for name in words.LISTS for error in self.errors.get(self.key(name), [])]

    @cached_property
    def ticked(self) -> dict[str, frozenset[str]]:
        """By list, the names whose box is ticked."""
        return {name: frozenset(self[self.key(name)].value() or ()) for name in words.LISTS}

    def wanted_of(self, stored: Stored) -> Any:
        if stored.name not in words.LISTS:
            return super().wanted_of(stored)
        if not self.may_change(stored):
            return None
        value = self._listed(stored.name)
        if not stored.readable:
            return sorted(value)
        return None if value == stored.value else Toggles(added=value - stored.value, removed=stored.value - value)

    def _listed(self, name: str) -> frozenset[str]:
        """The list as it is to be: what has no box stays as it is."""
        offered, ticked = self.offered[name], frozenset(self.cleaned_data[self.key(name)])
        on_it = offered - ticked if words.LISTS[name].is_closing else ticked
        return on_it | ((self.stored[name].value or frozenset()) - offered)


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
