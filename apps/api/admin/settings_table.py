"""The table of Settings → API: which tools assistants may call now, and what to do about those that are closed."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext

from apps.api import listing, registry
from apps.api.admin.settings_people import Picked
from apps.api.availability import Availability, ClosedReason, tool_availability
from apps.api.people import Scope
from apps.api.switches import Switches
from apps.api.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Row:
    """A tool in words. It is open when there is no reason against it."""

    module: str
    tool: str
    title: str
    kind: str
    permission: str
    scope: str
    danger: str
    reasons: list[str]


def heads() -> list[str]:
    """Of the columns; the module stands above its tools."""
    return [
        gettext("Tool"),
        gettext("Kind"),
        gettext("Permission"),
        gettext("Scope"),
        gettext("Danger"),
        gettext("Status"),
    ]


def rows(now: Switches, picked: Picked | None) -> list[Row]:
    """Every admin tool by module, then name: by the settings alone, or for the person."""
    scope = picked.scope if picked else None
    shut = [gettext("This person may not act now: %(why)s.") % {"why": picked.gate}] if picked and not scope else []
    return [_row(found, now, scope, shut) for found in tool_availability(scope, now=now)]


def _row(found: Availability, now: Switches, scope: Scope | None, shut: list[str]) -> Row:
    tool = registry.current().tools["admin", found.name]
    reasons = () if found.status == "available" else found.status.reasons
    return Row(
        module=found.module_name,
        tool=found.name,
        title=str(tool.title),
        kind=gettext("write") if found.kind == "write" else gettext("read"),
        permission=found.permission or "",
        scope=found.scope or "",
        danger=_danger(tool),
        reasons=shut + [text for reason in reasons for text in _words(reason, tool, now, scope)],
    )


def _danger(tool: Tool) -> str:
    return {"none": gettext("none"), "always": gettext("always"), "conditional": gettext("conditional")}[
        listing.danger(tool)
    ]


def _words(reason: ClosedReason, tool: Tool, now: Switches, scope: Scope | None) -> Iterator[str]:
    """What is in the way, and what to do."""
    match reason:
        case "module_disabled" if now.disabled_modules is None:
            yield gettext("The list of modules that are off can't be read: replace it above.")
        case "module_disabled":
            yield gettext("The module is off: tick “Module on”.")
        case "api_off" if now.api_disabled_modules is None or now.api_disabled_tools is None:
            yield gettext("A list of what is closed can't be read, so everything is: replace it above.")
        case "api_off":
            yield gettext("The module's API is off: tick “API on”.")
        case "tool_hidden":
            yield gettext("The tool is hidden: untick “hidden”.")
        case "agent_writes_off":
            yield gettext("The agent may only read here: tick “Agent may act”.")
        case "no_permission":
            yield _missing(tool, now, scope)


def _missing(tool: Tool, now: Switches, scope: Scope | None) -> str:
    if tool.permission is None or tool.scope is None:
        return gettext("Its declaration names no permission or no scope: nobody can call it.")
    if scope is None or not scope.can(tool.permission):
        return gettext("No role of this person has the permission %(permission)s: add it to one of them.") % {
            "permission": tool.permission
        }
    needed = {other.permission for other in _open_on(tool.scope, now)}
    if None in needed:
        text = gettext("Another tool on the scope %(scope)s names no permission: nobody holds the scope.")
        return text % {"scope": tool.scope}
    lacking = sorted(permission for permission in needed if permission and not scope.can(permission))
    text = gettext(
        "The scope %(scope)s takes the permissions of all its open tools; this person lacks: %(permissions)s."
    )
    return text % {"scope": tool.scope, "permissions": ", ".join(lacking)}


def _open_on(scope: str, now: Switches) -> list[Tool]:
    return [tool for tool in registry.current().by_scope.get(scope, ()) if now.is_open(tool) and now.is_on(tool.module)]
