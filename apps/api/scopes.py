"""Which API scopes a person holds right now (PS-5): those on which they hold the permission of every open tool."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from apps.api import registry
from apps.api.people import Scope
from apps.api.registry import Registry
from apps.api.switches import Switches
from apps.api.tool import Tool


def held(scope: Scope, wanted: Iterable[str], switches: Switches) -> frozenset[str]:
    """Those of the wanted API scopes that the person holds. A scope without an open tool is held by nobody."""
    needed = _needed(registry.current(), switches)
    return frozenset(name for name in wanted if name in needed and scope.can_all(needed[name]))


def held_by_person(scope: Scope, switches: Switches) -> frozenset[str]:
    """Every API scope that the person holds."""
    return held(scope, _needed(registry.current(), switches), switches)


def person_may_call(scope: Scope, held: frozenset[str], tool: Tool) -> bool:
    """Whether a session with this scope may call an open tool: by API scope and permission (LS-1). Core's own tools have neither."""
    return tool.permission is not None and scope.can(tool.permission) and tool.scope is not None and tool.scope in held


def cover(scopes: frozenset[str], tool: Tool) -> bool:
    """Whether the tool may be called by who holds these scopes. Of the tools for keys only core's own ask for none (MT-7)."""
    if tool.scope is None:
        return tool.audience == "public" or tool.module.key == "system"
    return tool.scope in scopes


@lru_cache(maxsize=8)
def _needed(tools: Registry, switches: Switches) -> Mapping[str, frozenset[str]]:
    """The permissions that each scope with an open tool asks for. Pure: the switches are one object per state of the settings."""
    found: dict[str, frozenset[str]] = {}
    for name, on_scope in tools.by_scope.items():
        is_open = [tool for tool in on_scope if switches.is_open(tool) and switches.is_on(tool.module)]
        # A tool without a permission can't be given by anybody's rights: its scope stays closed.
        if is_open and all(tool.permission for tool in is_open):
            found[name] = frozenset(tool.permission for tool in is_open if tool.permission)
    return found
