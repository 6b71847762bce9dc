"""`manage.py export_openapi`: the OpenAPI document, without a key and without a server, for linters and generators."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.api import credentials, registry, scopes, switches
from apps.api.call import Audience
from apps.api.openapi import document
from apps.api.switches import Switches
from apps.api.tool import Tool


class Command(BaseCommand):
    help = "Print the OpenAPI document of the open tools: of every scope, or as a key with some of them gets it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--public", action="store_true", help="the document of visitors without a key")
        parser.add_argument("--key-scopes", nargs="*", metavar="S", help="only what a key with these scopes may call")

    def handle(self, **options: Any) -> None:
        audience: Audience = "public" if options["public"] else "admin"
        if options["public"] and options["key_scopes"] is not None:
            raise CommandError("Visitors have no scopes: --public and --key-scopes exclude each other.")
        now = switches.parse(credentials.read(None).settings)
        tools = _tools(audience, _scopes(options["key_scopes"]), now)
        answer = document.answer(tools, audience, base_url=getattr(settings, "BASE_URL", ""), now=now)
        self.stdout.write(json.dumps(answer.result, ensure_ascii=False, indent=2))


def _scopes(wanted: list[str] | None) -> frozenset[str]:
    known = registry.current().by_scope
    if unknown := sorted(set(wanted or ()) - set(known)):
        raise CommandError(f"No tool has the scope {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
    return frozenset(known if wanted is None else wanted)


def _tools(audience: Audience, held: frozenset[str], now: Switches) -> list[Tool]:
    return [
        tool
        for tool in registry.current().of(audience)
        if now.is_open(tool) and now.is_on(tool.module) and scopes.cover(held, tool)
    ]
