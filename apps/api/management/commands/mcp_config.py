"""`manage.py mcp_config`: what a client's configuration file says about this server. It never holds a key."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.urls import reverse

from apps.api.mcp import clients


class Command(BaseCommand):
    help = "Print the MCP entry of this server for a client's configuration file: only the entry, to be piped."

    def add_arguments(self, parser: CommandParser) -> None:
        known = ", ".join(clients.CLIENTS)
        parser.add_argument("--client", default="claude-code", metavar="NAME", help=f"one of {known} (claude-code)")
        parser.add_argument("--public", action="store_true", help="the server of visitors, without a key")

    def handle(self, **options: Any) -> None:
        client = clients.CLIENTS.get(options["client"])
        if client is None:
            raise CommandError(f"There is no client {options['client']}. There are: {', '.join(clients.CLIENTS)}.")
        is_public = bool(options["public"])
        name, path = ("tollhouse-public", "api:mcp_public") if is_public else ("tollhouse", "api:mcp")
        server = clients.Server(name=name, url=_base_url() + reverse(path), wants_key=not is_public)
        self.stdout.write(clients.text(client, server))
        self.stderr.write(_advice(client, server), self.style.NOTICE)


def _base_url() -> str:
    found: str = getattr(settings, "BASE_URL", "")
    if not found:
        raise CommandError("Set BASE_URL to the address at which clients reach this server.")
    return found.rstrip("/")


def _advice(client: clients.Client, server: clients.Server) -> str:
    """Where the entry goes, for the person and not for the pipe."""
    key = f"; the key, from {client.key_from}" if server.wants_key else ""
    return f"{client.title} reads it from {client.file}{key}."
