"""How the database is emptied between tests whose transactions are real: as Django's `flush` leaves it, in a tenth of the time.

`flush` truncates every table, and makes all content types and permissions anew: a quarter of a second for each test. Here the rows are
deleted, and those two tables stay while they hold what they held; where a test changed them, `flush` itself mends it.
"""

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

# What `flush` makes anew, by alias, as it was right after that.
_made: dict[str, list[tuple[Any, ...]]] = {}
_KEPT = (ContentType, Permission)


def install(patch: pytest.MonkeyPatch) -> None:
    """From now on the tests of this process end this way."""
    patch.setattr(TransactionTestCase, "_fixture_teardown", _teardown)


def _teardown(self: TransactionTestCase) -> None:
    for alias in self._databases_names(include_mirrors=False):  # type: ignore[attr-defined]  # not in the stubs
        connection = connections[alias]
        if _made.get(alias) != _rows(alias):
            call_command("flush", verbosity=0, interactive=False, database=alias)
            _made[alias] = _rows(alias)
            continue
        empty(connection)
        ContentType.objects.clear_cache()  # as `flush` does


def _rows(alias: str) -> list[tuple[Any, ...]]:
    return [row for model in _KEPT for row in model._default_manager.using(alias).order_by("pk").values_list()]


def empty(connection: BaseDatabaseWrapper) -> None:
    """Delete all rows but those of the two tables; waits for whoever is still at one of them, as TRUNCATE does."""
    kept = {model._meta.db_table for model in _KEPT}
    tables = sorted(set(connection.introspection.django_table_names(only_existing=True, include_views=False)) - kept)
    with transaction.atomic(using=connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            names = [connection.ops.quote_name(table) for table in tables]
            # The role of a replica: no trigger fires, those of foreign keys among them.
            cursor.execute(
                f"SET LOCAL session_replication_role = replica; LOCK TABLE {', '.join(names)} IN ACCESS EXCLUSIVE MODE; "
                + "; ".join(f"DELETE FROM {name}" for name in names)
            )
        else:
            for statement in connection.ops.sql_flush(no_style(), tables):
                cursor.execute(statement)
