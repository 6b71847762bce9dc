"""Which tools a live session may call, and why not the others (LS-5): what Settings → API and the assistant show."""

from dataclasses import dataclass
from typing import Literal

from apps.api import credentials, registry, scopes, switches
from apps.api.people import Scope
from apps.api.switches import Switches
from apps.api.tool import Danger, Tool

ClosedReason = Literal["module_disabled", "api_off", "tool_hidden", "agent_writes_off", "no_permission"]


@dataclass(frozen=True, kw_only=True)
class Closed:
    """Why a tool is closed, in the order of `ClosedReason`."""

    reasons: tuple[ClosedReason, ...]


@dataclass(frozen=True, kw_only=True)
class Availability:
    """One admin tool as `tool_availability` shows it."""

    module_key: str
    module_name: str
    name: str
    kind: Literal["read", "write"]
    permission: str | None
    scope: str | None
    danger: Danger
    status: Literal["available"] | Closed


def tool_availability(scope: Scope | None, *, now: Switches | None = None) -> list[Availability]:
    """Every admin tool of every module by module name, then tool name, and whether a person's live session may call it.

    `scope` is taken as given: a session's own is `people.current().session(…).scope`. With it the available tools are exactly those that
    `visible_for(…, allow="all")` lists; with None the reasons are those of the settings alone. Nothing is charged or written. The list
    names every tool whatever the scope is: gate who may see it. `now` are the settings, for who has read them already.
    """
    now = now or switches.parse(credentials.read(None).settings)
    held = scopes.held_by_person(scope, now) if scope else frozenset()
    tools = [tool for tool in registry.current().of("admin") if tool.module.key != "system"]
    tools.sort(key=lambda tool: (str(tool.module.name), tool.name))
    return [_availability(tool, now, scope, held) for tool in tools]


def _availability(tool: Tool, now: Switches, scope: Scope | None, held: frozenset[str]) -> Availability:
    reasons = _closed_by_settings(tool, now)
    if scope is not None and not _is_granted(tool, scope, held, is_open=not reasons):
        reasons = (*reasons, "no_permission")
    return Availability(
        module_key=tool.module.key,
        module_name=str(tool.module.name),
        name=tool.name,
        kind="write" if tool.is_write else "read",
        permission=tool.permission,
        scope=tool.scope,
        danger=tool.danger,
        status=Closed(reasons=reasons) if reasons else "available",
    )


def _closed_by_settings(tool: Tool, now: Switches) -> tuple[ClosedReason, ...]:
    closed: dict[ClosedReason, bool] = {
        "module_disabled": not now.is_on(tool.module),
        "api_off": now.is_api_off(tool.module),
        "tool_hidden": now.is_hidden(tool),
        "agent_writes_off": tool.is_write and not now.agent_may_act(tool.module),
    }
    return tuple(reason for reason, holds in closed.items() if holds)


def _is_granted(tool: Tool, scope: Scope, held: frozenset[str], *, is_open: bool) -> bool:
    """For an open tool as `visible_for` decides; for a closed one only whether the roles grant its permission."""
    if is_open:
        return scopes.person_may_call(scope, held, tool)
    return tool.permission is not None and scope.can(tool.permission)
