"""Plain settings in an operator's words: what a switch, a number, an amount or a text is called, and how a change of it reads."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils import formats
from django.utils.functional import Promise
from django.utils.translation import gettext

from apps.api.setting_rules import Rule, Unreadable


@dataclass(frozen=True, kw_only=True)
class Words:
    """A switch or a number: `unit` stands behind a number."""

    label: Promise
    help: Promise
    unit: Promise | str = ""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One change as the operator reads it."""

    subject: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.subject}: {self.old} → {self.new}"


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words of the settings of one page, beside their rules."""

    words: Mapping[str, Words]
    rules: Mapping[str, Rule]

    def name(self, setting: str) -> str:
        return str(self.words[setting].label)

    def value(self, setting: str, stored: Any) -> str:
        """A stored value in words, whatever it is."""
        try:
            read = self.rules[setting].read(stored)
        except Unreadable:
            return gettext("can't be read (%(stored)s)") % {"stored": as_json(stored)}
        return self.said(setting, read)

    def said(self, setting: str, read: Any) -> str:
        """A value as it is read, in words."""
        match read:
            case bool():
                return gettext("on") if read else gettext("off")
            case int() | Decimal():
                return f"{number(read)} {self.words[setting].unit}"
            case _:
                return f"“{read}”" if read else gettext("none")

    def meanwhile(self, setting: str) -> str:
        """What happens while the stored value can't be read."""
        counts = self.said(setting, self.rules[setting].unreadable)
        return gettext("Meanwhile it counts as: %(value)s.") % {"value": counts}

    def line(self, setting: str, old: Any, new: Any) -> Line:
        return Line(subject=self.name(setting), old=self.value(setting, old), new=self.value(setting, new))


def number(amount: int | Decimal) -> str:
    """With its thousands apart, and no more decimals than it has."""
    exact = amount.normalize() if isinstance(amount, Decimal) else amount
    shown = f"{exact:f}" if isinstance(exact, Decimal) else exact
    return str(formats.number_format(shown, use_l10n=True, force_grouping=True))


def as_json(stored: Any) -> str:
    return json.dumps(stored, ensure_ascii=False)
