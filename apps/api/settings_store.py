"""Writing the settings of the table (ST-2): changed rows only, with one entry of old and new values.

Operators change boxes and numbers, not rows: two who change different boxes of one list both get what they asked for.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.activity import actions
from apps.activity import log as activity
from apps.api import setting_rules, switches
from apps.api.models import Setting
from apps.api.setting_rules import Rule, Unreadable

# How often somebody may be overtaken before they are told so.
_ATTEMPTS = 10


@dataclass(frozen=True, kw_only=True)
class Book:
    """The settings of one page: their rules, and what a change of them is called in the log."""

    rules: Mapping[str, Rule]
    action: str
    module: str


# The gate's, which `apps.api.switches` reads.
API = Book(rules=switches.RULES, action=actions.API_SETTINGS_CHANGED, module="api")


@dataclass(frozen=True, kw_only=True)
class Toggles:
    """Names put on a list and names taken off it. Whatever else is on the list stays there."""

    added: frozenset[str] = frozenset()
    removed: frozenset[str] = frozenset()

    def applied_to(self, names: frozenset[str]) -> list[str]:
        return sorted((names | self.added) - self.removed)


# What an operator asks for, by name: a value as the gate reads it, or Toggles of a list.
Wanted = Mapping[str, Any]
# What becomes of the rows, by name: `{"old", "new"}`, as the entry keeps it.
Changes = dict[str, dict[str, Any]]


class Changed(Exception):
    """Somebody else changed these settings after the form was opened: nothing was written.

    `boxes` has the settings by name, each with the names of its list that were put on or taken off, and with none where the whole
    value is another one.
    """

    def __init__(self, boxes: Mapping[str, frozenset[str]]) -> None:
        super().__init__(", ".join(boxes))
        self.boxes = boxes


class _Overtaken(Exception):
    """A row came into being since it was looked for: it is another operator's, and everything is looked at again."""


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One setting as it is now. `value` is what the gate reads, None for a closed list that can't be read."""

    name: str
    value: Any
    readable: bool = True


@dataclass(frozen=True, kw_only=True)
class Saved:
    """What was written, and the entry that says so; None where nothing was to be changed."""

    changes: Changes
    entry: UUID | None = None


def rows(*, book: Book = API) -> dict[str, Any]:
    """The stored values as they are, by name: only those that differ from their defaults. A form sends them back as `seen`."""
    return dict(Setting.objects.filter(name__in=book.rules).values_list("name", "value"))


def present(found: Mapping[str, Any], *, book: Book = API) -> dict[str, Stored]:
    """Every setting, in the order of the rules, out of `rows()`."""
    return {name: _stored(name, found, book) for name in book.rules}


def plan(wanted: Wanted, *, seen: Mapping[str, Any], found: Mapping[str, Any], book: Book = API) -> Changes:
    """What would become of the rows `found`, for who decided on the rows `seen`; nothing for what is so already.

    Raises Changed when one of these boxes or values is another one now, Unreadable for a value that the gate could not read, KeyError
    for an unknown name.
    """
    stale = {name: boxes for name in wanted if (boxes := _stale(name, wanted[name], seen, found, book)) is not None}
    if stale:
        raise Changed(stale)
    new = {name: _new(name, value, found, book) for name, value in wanted.items()}
    return {
        name: {"old": _raw(name, found, book), "new": value}
        for name, value in new.items()
        if _text(_raw(name, found, book)) != _text(value)
    }


def applied(changes: Changes, found: Mapping[str, Any]) -> dict[str, Any]:
    """The rows as they would be after the changes."""
    return {**found, **{name: change["new"] for name, change in changes.items()}}


def save(
    wanted: Wanted,
    *,
    seen: Mapping[str, Any],
    actor: activity.Actor,
    request_id: str = "",
    ip: str | None = None,
    book: Book = API,
) -> Saved:
    """Write what is asked for, under the locks of its rows, with one entry. Raises what `plan` raises: then nothing is written.

    `seen` are the rows that it was decided on.
    """
    for _ in range(_ATTEMPTS):
        with suppress(_Overtaken), transaction.atomic():
            return _save(wanted, seen, book, actor=actor, request_id=request_id, ip=ip)
    raise Changed(dict.fromkeys(wanted, frozenset()))


def _save(
    wanted: Wanted, seen: Mapping[str, Any], book: Book, *, actor: activity.Actor, request_id: str, ip: str | None
) -> Saved:
    locked = Setting.objects.select_for_update().filter(name__in=wanted).order_by("pk")
    found = dict(locked.values_list("name", "value"))
    changes = plan(wanted, seen=seen, found=found, book=book)
    for name in sorted(changes):  # in one order, so that two who make the same rows wait for each other in turn
        _write(name, changes[name]["new"], default=_default(name, book), is_new=name not in found)
    if not changes:
        return Saved(changes={})
    entry = activity.write(
        action=book.action,
        module=book.module,
        mode=activity.Mode.MANUAL,
        actor=actor,
        resource_type="setting",
        target=", ".join(changes),
        request_id=request_id,
        ip=ip,
        metadata={"changes": changes},
    )
    return Saved(changes=changes, entry=entry.pk)


def _write(name: str, value: Any, *, default: Any, is_new: bool) -> None:
    if value == default:
        Setting.objects.filter(name=name).delete()
    elif is_new:
        try:
            Setting.objects.create(name=name, value=value)
        except IntegrityError:
            raise _Overtaken from None
    else:
        Setting.objects.filter(name=name).update(value=value, updated_at=timezone.now())


def _stale(
    name: str, value: Any, seen: Mapping[str, Any], found: Mapping[str, Any], book: Book
) -> frozenset[str] | None:
    """None when what is to be changed is still as it was seen."""
    if not isinstance(value, Toggles):
        return None if _text(_raw(name, seen, book)) == _text(_raw(name, found, book)) else frozenset()
    before, now = _stored(name, seen, book), _stored(name, found, book)
    if not before.readable or not now.readable:
        return frozenset()
    return ((value.added | value.removed) & (before.value ^ now.value)) or None


def _new(name: str, value: Any, found: Mapping[str, Any], book: Book) -> Any:
    wanted = value.applied_to(_stored(name, found, book).value) if isinstance(value, Toggles) else value
    return setting_rules.stored(book.rules[name].read(wanted))


def _stored(name: str, found: Mapping[str, Any], book: Book) -> Stored:
    rule = book.rules[name]
    try:
        return Stored(name=name, value=rule.read(found[name]) if name in found else rule.default)
    except Unreadable:
        return Stored(name=name, value=rule.unreadable, readable=False)


def _raw(name: str, found: Mapping[str, Any], book: Book) -> Any:
    return found.get(name, _default(name, book))


def _default(name: str, book: Book) -> Any:
    return setting_rules.stored(book.rules[name].default)


def _text(value: Any) -> str:
    """Compared as JSON: for Python, True is 1."""
    return json.dumps(value, sort_keys=True)
