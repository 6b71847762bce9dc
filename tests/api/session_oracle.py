"""What a live session may call, said a second time: plain Python over raw settings and rights, from the text of SPEC 3, 4, 14 and 17.

It shares no code with the gate and imports nothing of it; `test_session_oracle` holds the two against each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A tool as its module declares it. `hint` is the annotation `read_only`, None where the author forgot it."""

    module: str
    name: str
    scope: str | None
    permission: str | None
    hint: Any = None
    audience: str = "admin"

    @property
    def is_write(self) -> bool:
        """MT-2: unless `read_only` is exactly True."""
        return self.hint is not True

    @property
    def alias(self) -> str:
        return self.name.replace(".", "_")


# MT-7: without scope and permission, so that nobody's session may call them.
_CORES = tuple(
    Declared(module="system", name=f"system.{name}", scope=None, permission=None, hint=True)
    for name in ("whoami", "problems")
)


@dataclass(frozen=True, kw_only=True)
class Rights:
    """A person: what each role grants, what was given to them directly, and the role that their session acts as."""

    roles: tuple[frozenset[str], ...]
    own: frozenset[str] = frozenset()
    is_owner: bool = False
    acts_as: int | None = None

    def hold(self, permission: str | None) -> bool:
        """PS-4: as one role only what that role grants. What needs no permission is given by nobody's rights."""
        if permission is None:
            return False
        if self.acts_as is not None:
            return permission in self.roles[self.acts_as]
        return self.is_owner or permission in self.own.union(*self.roles)


def served(tools: Sequence[Declared]) -> list[Declared]:
    """MT-5: of two tools of one audience with the same name or alias the first keeps it, and the second is ignored."""
    found: list[Declared] = []
    for tool in tools:
        taken = {name for other in found if other.audience == tool.audience for name in (other.name, other.alias)}
        if not taken & {tool.name, tool.alias}:
            found.append(tool)
    return found


@dataclass(frozen=True, kw_only=True)
class Oracle:
    """One moment: the tools in their order of declaration, the settings' rows as they are stored, and a session's rights."""

    tools: Sequence[Declared]
    rows: Mapping[str, Any]
    rights: Rights

    def listed(self) -> list[Declared]:
        """The tools that `tool_availability` shows."""
        return [tool for tool in served(self.tools) if tool.audience == "admin"]

    def closed_by_settings(self, tool: Declared) -> tuple[str, ...]:
        """The reasons without a person, in the order of seed A. What can't be read closes (ST-2, SA-1)."""
        return tuple(self._closed_by_settings(tool))

    def closed(self, tool: Declared) -> tuple[str, ...]:
        """LS-5: an open tool asks for its permission and for its scope, a closed one for its permission alone."""
        reasons = self.closed_by_settings(tool)
        granted = self.rights.hold(tool.permission) and (bool(reasons) or self._holds(tool.scope))
        return reasons if granted else (*reasons, "no_permission")

    def available(self, *, allow: str) -> set[str]:
        """The names that `visible_for` lists."""
        return {
            tool.name for tool in self.listed() if not self.closed(tool) and not (tool.is_write and allow == "read")
        }

    def answer(self, name: str, *, allow: str) -> str:
        """What `execute_as` says to a good input, in the order of LS-1: `ran`, `held`, or the code of the refusal."""
        tool = next((tool for tool in (*self.listed(), *_CORES) if tool.name == name), None)
        if tool is None:
            return "not_found"
        reasons = self.closed(tool)
        refusals = {
            "not_found": "api_off" in reasons or "tool_hidden" in reasons,
            "module_disabled": "module_disabled" in reasons,
            "forbidden": tool.is_write and allow == "read",
            "module_write_disabled": "agent_writes_off" in reasons,
        }
        for code, holds in refusals.items():
            if holds:
                return code
        if reasons:
            return "forbidden"
        return "held" if tool.is_write else "ran"

    def is_readable(self, setting: str) -> bool:
        return self._names(setting) is not None

    def _closed_by_settings(self, tool: Declared) -> Iterator[str]:
        modules_off, api_off = self._names("disabled_modules"), self._names("api_disabled_modules")
        hidden, may_write = self._names("api_disabled_tools"), self._names("api_session_write_modules")
        if modules_off is None or tool.module in modules_off:
            yield "module_disabled"
        if api_off is None or hidden is None or tool.module in api_off:
            yield "api_off"
        if hidden is not None and tool.name in hidden:
            yield "tool_hidden"
        if tool.is_write and (may_write is None or tool.module not in may_write):
            yield "agent_writes_off"

    def _holds(self, scope: str | None) -> bool:
        """PS-5: the permission of every open tool on the scope, and one of them at least. Open: module on, API on, not hidden."""
        if scope is None:
            return False
        open_tools = [
            tool
            for tool in self.listed()
            if tool.scope == scope and not set(self.closed_by_settings(tool)) - {"agent_writes_off"}
        ]
        return bool(open_tools) and all(self.rights.hold(tool.permission) for tool in open_tools)

    def _names(self, setting: str) -> set[str] | None:
        """None for a value that is no list of texts; without a row the list is empty."""
        value = self.rows.get(setting, [])
        if type(value) is not list or any(type(name) is not str for name in value):
            return None
        return set(value)
