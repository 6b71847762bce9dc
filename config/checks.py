"""System checks over the way the program is set up."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.db import connections


@checks.register()
def one_process(**_: Any) -> list[checks.CheckMessage]:
    """SQLite has one writer at a time, and the embedded process keeps limits and events in its memory (RU-1)."""
    if settings.EMBEDDED or connections["default"].vendor != "sqlite":
        return []
    return [
        checks.Warning(
            "SQLite is for one process, and EMBEDDED is off.",
            hint="Set EMBEDDED=1 where one process serves everything, else DATABASE_URL to PostgreSQL.",
            id="config.W001",
        )
    ]
