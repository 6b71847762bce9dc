"""The modules of Settings → API as the page shows them: a card each, with its boxes and a row for each of its tools."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from django.utils.translation import gettext

from apps.api import registry
from apps.api.admin import settings_words as words
from apps.api.admin.settings_form import SettingsForm
from apps.api.tool import Module, Tool


@dataclass(frozen=True, kw_only=True)
class Box:
    """One name on one of the lists. Without `is_offered` it can't be ticked, and `reason` says why."""

    id: str
    field: str
    value: str
    label: str
    help_id: str
    is_ticked: bool
    is_offered: bool = True
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class ToolRow:
    name: str
    title: str
    kind: str
    audience: str
    box: Box


@dataclass(frozen=True, kw_only=True)
class Card:
    """A module; `is_installed` is False for a name that only the lists know."""

    key: str
    name: str
    boxes: list[Box]
    tools: list[ToolRow]
    is_installed: bool = True


def cards(form: SettingsForm) -> list[Card]:
    """The installed modules by name, then the names of modules that are stored and not installed."""
    installed = sorted((module for module in registry.current().modules if module.key != "system"), key=_by_name)
    known = {module.key for module in installed}
    stored = {name for setting in words.MODULES for name in form.stored[setting].value or ()}
    return [_card(form, module) for module in installed] + [_gone(form, key) for key in sorted(stored - known)]


def gone_tools(form: SettingsForm) -> list[Box]:
    """Hidden tools that are not installed."""
    known = {tool.name for tool in registry.current().tools.values() if tool.module.key != "system"}
    return [
        _box(form, "api_disabled_tools", name)
        for name in sorted(form.stored["api_disabled_tools"].value or ())
        if name not in known
    ]


def _by_name(module: Module) -> tuple[str, str]:
    return str(module.name), module.key


def _card(form: SettingsForm, module: Module) -> Card:
    tools = sorted((tool for tool in registry.current().tools.values() if tool.module is module), key=_named)
    return Card(
        key=module.key,
        name=str(module.name),
        boxes=[_box(form, setting, module.key) for setting in words.MODULES],
        tools=[_row(form, name, list(same)) for name, same in groupby(tools, key=_named)],
    )


def _gone(form: SettingsForm, key: str) -> Card:
    """Only the boxes of the lists that name it: changing one takes the name off."""
    naming = [setting for setting in words.MODULES if key in (form.stored[setting].value or ())]
    return Card(key=key, name=key, boxes=[_box(form, setting, key) for setting in naming], tools=[], is_installed=False)


def _box(form: SettingsForm, setting: str, name: str) -> Box:
    text = words.LISTS[setting]
    is_offered = name in form.offered[setting]
    return Box(
        id=f"id_{text.field}_{name}",
        field=text.field,
        value=name,
        label=str(text.label),
        help_id=f"about_{text.field}",
        is_ticked=name in form.ticked[setting],
        is_offered=is_offered,
        reason="" if is_offered else gettext("It has no tool that changes something for keys and assistants."),
    )


def _named(tool: Tool) -> str:
    return tool.name


def _row(form: SettingsForm, name: str, tools: Iterable[Tool]) -> ToolRow:
    """A name is one box, also where both audiences have a tool of that name."""
    tools = list(tools)
    return ToolRow(
        name=name,
        title=str(tools[0].title),
        kind=gettext("write") if any(tool.is_write for tool in tools) else gettext("read"),
        audience=", ".join(sorted(_audience(tool) for tool in tools)),
        box=_box(form, "api_disabled_tools", name),
    )


def _audience(tool: Tool) -> str:
    return gettext("visitors") if tool.audience == "public" else gettext("keys and assistants")
