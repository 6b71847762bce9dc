"""Writing the settings that `apps.api.switches` reads (ST-2): changed rows only, with one entry of old and new values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from apps.activity import actions
from apps.activity import log as activity
from apps.api import switches
from apps.api.models import Setting
from apps.api.switches import Unreadable


class Changed(Exception):
    """Another operator changed these settings after the form was opened: nothing was written."""

    def __init__(self, names: list[str]) -> None:
        super().__init__(", ".join(names))
        self.names = names


@dataclass(frozen=True, kw_only=True)
class Stored:
    """One setting as it is now. `value` is what the gate reads, None for a closed list that can't be read."""

    name: str
    value: Any
    readable: bool = True


def rows() -> dict[str, Any]:
    """The stored values as they are, by name: only those that differ from their defaults. A form sends them back as `seen`."""
    return dict(Setting.objects.filter(name__in=switches.RULES).values_list("name", "value"))


def present(found: Mapping[str, Any]) -> dict[str, Stored]:
    """Every setting, in the order of the rules, out of `rows()`."""
    return {name: _stored(name, found) for name in switches.RULES}


@transaction.atomic
def save(
    values: Mapping[str, Any],
    *,
    seen: Mapping[str, Any],
    actor: activity.Actor,
    request_id: str = "",
    ip: str | None = None,
) -> list[str]:
    """Store these values; the names of those that differ from what is stored. A value equal to its default needs no row.

    `seen` are the rows that the values were decided on. Raises Changed when one of these names has another row now, Unreadable for a
    value that the gate could not read, KeyError for an unknown name.
    """
    wanted = {name: _as_stored(switches.checked(name, value)) for name, value in values.items()}
    locked = Setting.objects.select_for_update().filter(name__in=wanted).order_by("pk")
    found = dict(locked.values_list("name", "value"))
    stale = [name for name in wanted if not _same(found, seen, name)]
    if stale:
        raise Changed(stale)
    changes = {name: _change(name, value, found) for name, value in wanted.items() if _differs(name, value, found)}
    for name, change in changes.items():
        _write(name, change["new"], is_new=name not in found)
    if changes:
        activity.write(
            action=actions.API_SETTINGS_CHANGED,
            module="api",
            mode=activity.Mode.MANUAL,
            actor=actor,
            resource_type="setting",
            target=", ".join(changes),
            request_id=request_id,
            ip=ip,
            metadata={"changes": changes},
        )
    return list(changes)


def _write(name: str, value: Any, *, is_new: bool) -> None:
    if value == _default(name):
        Setting.objects.filter(name=name).delete()
    elif is_new:
        # A row that came into being since it was looked for is another operator's.
        try:
            with transaction.atomic():
                Setting.objects.create(name=name, value=value)
        except IntegrityError:
            raise Changed([name]) from None
    else:
        Setting.objects.update_or_create(name=name, defaults={"value": value})


def _change(name: str, value: Any, found: Mapping[str, Any]) -> dict[str, Any]:
    return {"old": found.get(name, _default(name)), "new": value}


def _differs(name: str, value: Any, found: Mapping[str, Any]) -> bool:
    return _text(found.get(name, _default(name))) != _text(value)


def _stored(name: str, found: Mapping[str, Any]) -> Stored:
    rule = switches.RULES[name]
    try:
        return Stored(name=name, value=rule.read(found[name]) if name in found else rule.default)
    except Unreadable:
        return Stored(name=name, value=rule.unreadable, readable=False)


def _same(found: Mapping[str, Any], seen: Mapping[str, Any], name: str) -> bool:
    return (name in found) == (name in seen) and _text(found.get(name)) == _text(seen.get(name))


def _default(name: str) -> Any:
    return _as_stored(switches.RULES[name].default)


def _as_stored(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset) else value


def _text(value: Any) -> str:
    """Compared as JSON: for Python, True is 1."""
    return json.dumps(value, sort_keys=True)
