"""Holding a call by hand: a confirmation row with a known code, a COMMIT that waits for the test, and seeing that a call waits."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import psycopg
from django.db import connection as django_connection
from django.utils import timezone

from apps.api import confirmations
from apps.api.models import Confirmation
from tests.api.factories import Machine

_LOCK = 778_899


def hold(machine: Machine, tool: str, input_hash: str, *, fingerprint: str, code: str = "tc_" + "a" * 32) -> str:
    """A waiting confirmation of this machine, and its code."""
    assert machine.key is not None
    now = timezone.now()
    Confirmation.objects.create(
        caller=f"key:{machine.key.family_id}",
        tool=tool,
        input_hash=input_hash,
        fingerprint=fingerprint,
        digest=confirmations._digest(code),
        created_at=now,
        expires_at=now + timedelta(minutes=10),
    )
    return code


@contextmanager
def commit_held(connection: Any) -> Iterator[Callable[[], None]]:
    """While open, a COMMIT that wrote an entry waits inside the database; the function lets it go on."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE FUNCTION wait_for_the_test() RETURNS trigger LANGUAGE plpgsql AS "
            f"'BEGIN PERFORM pg_advisory_xact_lock({_LOCK}); RETURN NULL; END'"
        )
        cursor.execute(
            "CREATE CONSTRAINT TRIGGER wait_for_the_test AFTER INSERT ON activity_entry "
            "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION wait_for_the_test()"
        )
    found = django_connection.settings_dict
    holder = psycopg.connect(
        host=found["HOST"], port=found["PORT"], user=found["USER"], dbname=found["NAME"], autocommit=True
    )
    holder.execute(f"SELECT pg_advisory_lock({_LOCK})")
    try:
        yield lambda: _let_go(holder)
    finally:
        holder.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP TRIGGER wait_for_the_test ON activity_entry")
            cursor.execute("DROP FUNCTION wait_for_the_test")


def _let_go(holder: Any) -> None:
    holder.execute(f"SELECT pg_advisory_unlock({_LOCK})")


def waiting_for_a_lock() -> int:
    """How many connections of the test database wait for a lock."""
    with django_connection.cursor() as cursor:
        cursor.execute("SELECT pg_stat_clear_snapshot()")  # a transaction sees what it saw first
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


def wait_until(true: Callable[[], bool], *, seconds: float = 30) -> None:
    """Until it is true; fails when it does not become so."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)
