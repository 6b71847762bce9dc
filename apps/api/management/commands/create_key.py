"""`manage.py create_key`: a key for a person, from the server's own command line. Its text is shown once."""

import json
import re
from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from apps.activity import log
from apps.api import keys, registry

MIN_BUDGET = 20

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DURATION = re.compile(r"([1-9][0-9]{0,5})([mhdw])")


class Command(BaseCommand):
    help = "Create an API key for a person and print it, once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--owner", required=True, help="the e-mail address, or whatever the people here log in with"
        )
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument(
            "--scope", action="append", required=True, metavar="S", help="what it may do; repeat for more than one"
        )
        parser.add_argument("--requires-approval", action="store_true", help="another person decides every write")
        parser.add_argument("--expires", metavar="30d", help="a number and m, h, d or w; never when left out")
        parser.add_argument(
            "--budget", type=int, metavar="UNITS_A_MINUTE", help=f"of its own, {MIN_BUDGET} or more; else the setting's"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")

    def handle(self, **options: Any) -> None:
        grant = keys.Grant(
            name=options["name"],
            scopes=_scopes(options["scope"]),
            requires_approval=options["requires_approval"],
            budget=_budget(options["budget"]),
            expires_at=_expiry(options["expires"], now=timezone.now()),
        )
        try:
            key, text = keys.create(
                grant, owner=_owner(options["owner"]), actor=log.Actor(kind="system", name="create_key")
            )
        except ValidationError as error:
            raise CommandError("; ".join(error.messages)) from error
        if options["json"]:
            self.stdout.write(json.dumps({"id": key.public_id, "key": text}))
        else:
            self.stdout.write(f"Key {key.public_id} of {options['owner']}, shown this once:\n{text}")


def _owner(name: str) -> Any:
    people = get_user_model()
    field: str = people.USERNAME_FIELD
    owner = people._default_manager.filter(**{field: name}).first()
    if owner is None:
        raise CommandError(f"There is nobody with the {field} {name}.")
    return owner


def _scopes(wanted: list[str]) -> list[str]:
    known = registry.current().by_scope
    if unknown := sorted(set(wanted) - set(known)):
        raise CommandError(f"No tool has the scope {', '.join(unknown)}. There are: {', '.join(sorted(known))}.")
    return wanted


def _budget(units: int | None) -> int | None:
    if units is not None and units < MIN_BUDGET:
        raise CommandError(f"A key's own budget is {MIN_BUDGET} units a minute or more.")
    return units


def _expiry(text: str | None, *, now: datetime) -> datetime | None:
    if text is None:
        return None
    found = _DURATION.fullmatch(text)
    if found is None:
        raise CommandError("--expires takes a number and m, h, d or w, for example 30d.")
    try:
        return now + timedelta(**{_UNITS[found[2]]: int(found[1])})
    except OverflowError:
        raise CommandError("--expires lies beyond the calendar.") from None
