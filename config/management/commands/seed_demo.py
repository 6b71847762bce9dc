"""`manage.py seed_demo`: the demo's people, keys, products and example chats; a second run renews passwords and keys."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from config import demo


class Command(BaseCommand):
    help = "Make the demo's people, keys, products and example chats, or renew its passwords and keys. Only in debug."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print people and keys as one JSON object")

    def handle(self, **options: Any) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo is for debug only: set DEBUG=1.")
        report = demo.fill()
        self.stdout.write(json.dumps(report) if options["json"] else _text(report))


def _text(report: demo.Report) -> str:
    people = [f"  {name:<10}{login['email']:<25}{login['password']}" for name, login in report["people"].items()]
    keys = [f"  {name:<10}{key}" for name, key in report["keys"].items()]
    return "\n".join(["People, with their passwords:", *people, "Keys:", *keys, "They are shown this once."])
