"""`manage.py list_tools`: every declared tool, what it asks for, and whether it is open now."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from apps.api import credentials, listing, registry, switches
from apps.api.switches import Switches
from apps.api.tool import Tool

COLUMNS = ("name", "audience", "kind", "scope", "permission", "danger", "state")


class Command(BaseCommand):
    help = "List every tool with its audience, kind, scope, permission, danger and state."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        now = switches.parse(credentials.read(None).settings)
        current = registry.current()
        tools = [
            _row(tool, now) for tool in sorted(current.tools.values(), key=lambda tool: (tool.name, tool.audience))
        ]
        self.stdout.write(json.dumps({"tools": tools}) if options["json"] else _table(tools))


def _row(tool: Tool, now: Switches) -> dict[str, str | None]:
    return {
        "name": tool.name,
        "audience": tool.audience,
        "kind": "write" if tool.is_write else "read",
        "scope": tool.scope,
        "permission": tool.permission,
        "danger": listing.danger(tool),
        "state": _state(tool, now),
    }


def _state(tool: Tool, now: Switches) -> str:
    """As a call would find it: a hidden tool does not exist, whatever its module."""
    if not now.is_open(tool):
        return "hidden"
    return "open" if now.is_on(tool.module) else "module off"


def _table(tools: list[dict[str, str | None]]) -> str:
    lines = [COLUMNS, *(tuple(tool[column] or "-" for column in COLUMNS) for tool in tools)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(COLUMNS))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )
