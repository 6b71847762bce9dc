"""What the page of a person's own keys says of each key: its scopes in words and why one does not work, its state, its last use."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.timesince import timesince
from django.utils.translation import gettext

from apps.api import registry
from apps.api.models import ApiKey
from apps.api.models.key import KeyState
from apps.api.own_keys import Standing
from apps.api.tool import Tool

_MOMENTS = timedelta(minutes=2)


@dataclass(frozen=True, kw_only=True)
class ScopeLine:
    """`does` is what the open tools on the scope do; `fault` is why the key can't use it now, "" when it can."""

    name: str
    does: str
    fault: str


@dataclass(frozen=True, kw_only=True)
class Row:
    """One key of the list."""

    key: ApiKey
    state: KeyState
    scopes: list[ScopeLine]
    used: str
    made_by: str
    can_rotate: bool
    can_revoke: bool

    @property
    def has_ended(self) -> bool:
        return self.state in (KeyState.EXPIRED, KeyState.REVOKED)

    @property
    def is_exposed(self) -> bool:
        return self.state == KeyState.EXPOSED


def row(key: ApiKey, standing: Standing, now: datetime) -> Row:
    state = key.state_at(now)
    works = state not in (KeyState.EXPIRED, KeyState.REVOKED)
    return Row(
        key=key,
        state=state,
        scopes=[scope_line(name, standing) for name in key.scopes],
        used=_used(key.last_used_at, now),
        made_by=_made_by(key, standing.person),
        can_rotate=works and key.successor_id is None and standing.refusal() is None,
        can_revoke=works and not standing.is_impersonated,
    )


def scope_line(name: str, standing: Standing) -> ScopeLine:
    tools = [tool for tool in registry.current().by_scope.get(name, ()) if _is_open(tool, standing)]
    return ScopeLine(name=name, does=_does(tools), fault="" if name in standing.held else _fault(tools, standing))


def _is_open(tool: Tool, standing: Standing) -> bool:
    return standing.switches.is_open(tool) and standing.switches.is_on(tool.module)


def _does(tools: Iterable[Tool]) -> str:
    """What it reads, then what it changes."""
    reads = _titles(tool for tool in tools if not tool.is_write)
    writes = _titles(tool for tool in tools if tool.is_write)
    words = [reads, gettext("changes data: %(tools)s") % {"tools": writes} if writes else ""]
    return "; ".join(filter(None, words))


def _fault(tools: list[Tool], standing: Standing) -> str:
    if standing.scope is None:
        return gettext("Does not work: your account may not act at the moment.")
    if not tools:
        return gettext("Does not work: nothing that it allows is switched on at the moment.")
    scope = standing.scope
    lacking = [tool for tool in tools if tool.permission is None or not scope.can(tool.permission)]
    return gettext(
        "Does not work: you may not do all that it allows. What you lack: %(tools)s. Ask an administrator for it, or use "
        "a key without this scope."
    ) % {"tools": _titles(lacking)}


def _titles(tools: Iterable[Tool]) -> str:
    return ", ".join(gettext(str(tool.title)) for tool in tools)


def _used(at: datetime | None, now: datetime) -> str:
    if at is None:
        return gettext("never used")
    if now - at < _MOMENTS:
        return gettext("used just now")
    return gettext("last used %(time)s ago") % {"time": timesince(at, now)}


def _made_by(key: ApiKey, person: Any) -> str:
    if key.created_by_id is None:
        return gettext("a command of the operator")
    if key.created_by_id == person.pk:
        return gettext("you")
    maker: Any = key.created_by
    return str(getattr(maker, "get_full_name", maker.get_username)())
