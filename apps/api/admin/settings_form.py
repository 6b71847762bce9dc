"""The form of the settings: a field for each rule, typed by its default."""

import json
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import registry, settings_store, switches
from apps.api.settings_store import Stored


class SettingsForm(forms.Form):
    """What is stored now, and with it `seen`: the rows that the page showed, so that another operator's change is not overwritten.

    A value that can't be read is left alone unless its `replace_…` box is ticked: what is closed because of it must not open by saving
    something else.
    """

    seen = forms.JSONField(widget=forms.HiddenInput, required=False)

    def __init__(self, *args: Any, rows: Mapping[str, Any], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rows = rows
        self.stored = settings_store.present(rows)
        self.initial["seen"] = rows
        for name, stored in self.stored.items():
            self.fields[name] = _field(stored)
            if not stored.readable:
                self.fields[_replace(name)] = forms.BooleanField(
                    label=_("Replace the stored value with this"), required=False
                )

    def clean_seen(self) -> dict[str, Any]:
        seen = self.cleaned_data["seen"]
        if not isinstance(seen, dict):
            raise ValidationError(gettext("The form is damaged: open the page again."))
        return seen

    def lines(self) -> list[dict[str, Any]]:
        """The fields as the template lays them out."""
        return [self._line(stored) for stored in self.stored.values()]

    def chosen(self) -> dict[str, Any]:
        """The values that the operator changed, against what the page showed them."""
        shown = settings_store.present(self.cleaned_data["seen"])
        return {name: self._value(name) for name, stored in shown.items() if self._is_changed(stored)}

    def _is_changed(self, stored: Stored) -> bool:
        if not stored.readable:
            return bool(self.cleaned_data.get(_replace(stored.name)))
        return bool(self._value(stored.name) != _plain(stored.value))

    def _value(self, name: str) -> Any:
        return _plain(self.cleaned_data[name])

    def _line(self, stored: Stored) -> dict[str, Any]:
        default = switches.RULES[stored.name].default
        return {
            "field": self[stored.name],
            "name": stored.name,
            "many": isinstance(default, frozenset),
            "default": _words(default),
            "is_changed": stored.value != default,
            "unreadable": None if stored.readable else json.dumps(self.rows[stored.name], ensure_ascii=False),
            "replace": None if stored.readable else self[_replace(stored.name)],
        }


def _replace(name: str) -> str:
    return f"replace_{name}"


def _field(stored: Stored) -> forms.Field:
    rule = switches.RULES[stored.name]
    common: dict[str, Any] = {"label": rule.help, "initial": _plain(stored.value)}
    match rule.default:
        case bool():
            return forms.BooleanField(required=False, **common)
        case int():
            minimum, maximum = rule.bounds or (None, None)
            return forms.IntegerField(min_value=minimum, max_value=maximum, **common)
        case _:
            choices = _choices(stored)
            return forms.MultipleChoiceField(
                required=False, choices=choices, widget=forms.CheckboxSelectMultiple, **common
            )


def _choices(stored: Stored) -> list[tuple[str, Any]]:
    """What is installed, and names that are stored although they are not. Core's own module can't be closed (MT-7)."""
    modules = [module for module in registry.current().modules if module.key != "system"]
    if stored.name.endswith("_modules"):
        known = {module.key: module.name for module in modules}
    else:
        known = {tool.name: tool.title for module in modules for tool in module.tools}
    gone = {name: gettext("not installed") for name in stored.value or () if name not in known}
    return [
        (name, format_html('{} <span class="th-quiet">{}</span>', name, title))
        for name, title in sorted({**known, **gone}.items())
    ]


def _plain(value: Any) -> Any:
    """Lists of names in one order; no list where they can't be read."""
    return sorted(value) if isinstance(value, frozenset | list) else value


def _words(default: Any) -> str:
    match default:
        case bool():
            return gettext("on") if default else gettext("off")
        case int():
            return str(default)
        case _:
            return gettext("none")
