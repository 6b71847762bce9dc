"""Reads and previews can't write, and the database itself says so (RF-16)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from django.db import connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper


@contextmanager
def read_only() -> Iterator[None]:
    """Until the end every database of the project refuses writes, and nothing that was done in here stays: hooks neither.

    Works alone and inside the effect's transaction. A raised exception passes through.
    """
    with ExitStack() as guards:
        for connection in connections.all():
            guards.enter_context(_GUARDS[connection.vendor](connection))
        yield


@contextmanager
def _postgresql(connection: Any) -> Iterator[None]:
    """A read-only savepoint: PostgreSQL lets nothing inside a subtransaction lift it."""
    inside = connection.in_atomic_block
    with transaction.atomic(using=connection.alias):
        with connection.cursor() as cursor:
            if inside:
                cursor.execute("SET TRANSACTION READ ONLY")
            else:
                # One round trip for both; the savepoint is what makes the setting final.
                cursor.execute("SET TRANSACTION READ ONLY; SAVEPOINT tollhouse_guard")
        try:
            yield
        finally:
            transaction.set_rollback(True, using=connection.alias)


@contextmanager
def _sqlite(connection: Any) -> Iterator[None]:
    """`query_only` on the raw connection, on before the savepoint and off after its end; a connection that keeps it is dropped."""
    block = transaction.atomic(using=connection.alias)
    if connection.in_atomic_block:
        _query_only(connection, "ON")
        block.__enter__()
    else:
        _begin_deferred(connection, block)
        _query_only(connection, "ON")
    try:
        try:
            yield
        finally:
            transaction.set_rollback(True, using=connection.alias)
            block.__exit__(None, None, None)
    finally:
        _lift(connection)


def _begin_deferred(connection: Any, block: transaction.Atomic) -> None:
    """BEGIN DEFERRED for this one transaction: with IMMEDIATE a read would wait for the writer."""
    connection.ensure_connection()
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        block.__enter__()
    finally:
        connection.transaction_mode = mode


def _query_only(connection: Any, state: str) -> None:
    connection.connection.execute(f"PRAGMA query_only = {state}")


def _lift(connection: Any) -> None:
    try:
        _query_only(connection, "OFF")
    except Exception:
        _drop(connection)


def _drop(connection: BaseDatabaseWrapper) -> None:
    connection.in_atomic_block = False
    connection.close()


_GUARDS = {"postgresql": _postgresql, "sqlite": _sqlite}
