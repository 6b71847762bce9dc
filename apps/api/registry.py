"""Which tools there are: found at start-up in each app's `tools.py` (MT-1), looked up in dictionaries (MT-6)."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module

import structlog
from django.apps import apps
from django.utils.module_loading import module_has_submodule

from apps.api import problems
from apps.api.call import Audience
from apps.api.problems import Kind
from apps.api.tool import Module, Tool

log = structlog.get_logger(__name__)


class Registry:
    """An index over the modules. A name or alias declared twice stays with the first; the checks name the second."""

    def __init__(self, modules: Iterable[Module]) -> None:
        self.modules = tuple(modules)
        self.tools: dict[tuple[Audience, str], Tool] = {}
        self.duplicates: list[Tool] = []
        spelled: set[tuple[Audience, str]] = set()
        for tool in self.declared():
            names = {(tool.audience, tool.name), (tool.audience, tool.alias)}
            if spelled & names:
                self.duplicates.append(tool)
                log.error("tool_declared_twice", tool=tool.name, module=tool.module.key)
                continue
            spelled |= names
            self.tools[tool.audience, tool.name] = tool

    def declared(self) -> Iterator[Tool]:
        """Every declared tool, the ignored duplicates too, in the order of declaration."""
        for module in self.modules:
            yield from module.tools

    def find(self, audience: Audience, name: str) -> Tool | None:
        return self.tools.get((audience, name))

    def canonical(self, audience: Audience, spelled: str) -> str:
        """The name of the tool that is spelled with dots or, as MCP's clients do, with underscores; what is neither stays as it is."""
        return spelled if (audience, spelled) in self.tools else self._by_alias.get((audience, spelled), spelled)

    @cached_property
    def _by_alias(self) -> Mapping[tuple[Audience, str], str]:
        return {(audience, tool.alias): name for (audience, name), tool in self.tools.items()}

    def of(self, audience: Audience) -> list[Tool]:
        """The audience's tools by name."""
        return self._by_audience.get(audience, [])

    @cached_property
    def _by_audience(self) -> dict[str, list[Tool]]:
        found: dict[str, list[Tool]] = {}
        for (audience, _), tool in sorted(self.tools.items()):
            found.setdefault(audience, []).append(tool)
        return found

    @cached_property
    def by_scope(self) -> Mapping[str, tuple[Tool, ...]]:
        """The admin tools on each scope."""
        found: dict[str, tuple[Tool, ...]] = {}
        for tool in self.of("admin"):
            if tool.scope is not None:
                found[tool.scope] = (*found.get(tool.scope, ()), tool)
        return found

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """Every problem code that an answer may carry: core's, then the modules' own."""
        own = {code: kind for module in self.modules for code, kind in module.problems.items()}
        return {**own, **problems.CORE}


_current = Registry(())


def current() -> Registry:
    return _current


def discover() -> None:
    """Import every app's `tools.py` and index the modules found there; core's own module comes first."""
    found: dict[int, Module] = {id(_core()): _core()}
    for config in apps.get_app_configs():
        if module_has_submodule(config.module, "tools"):
            for value in vars(import_module(f"{config.name}.tools")).values():
                if isinstance(value, Module):
                    found[id(value)] = value
    _install(Registry(found.values()))


def _core() -> Module:
    """Core's own tools are found like everybody's: they stand on services that stand on this registry."""
    module: Module = import_module("apps.api.system").module
    return module


def _install(registry: Registry) -> None:
    global _current  # noqa: PLW0603 - set once at start-up
    _current = registry


@contextmanager
def using(*modules: Module) -> Iterator[Registry]:
    """Only these modules, beside core's own, until the end: for a host's own tests of its tools."""
    before = _current
    _install(Registry((_core(), *modules)))
    try:
        yield _current
    finally:
        _install(before)
