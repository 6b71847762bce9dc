"""Reads and previews can't write, and the database itself says so (RF-16)."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import structlog
from django.db import connections, transaction

from apps.api import libpq

log = structlog.get_logger(__name__)


@contextmanager
def read_only() -> Iterator[None]:
    """Until the end every database of the project refuses writes, and nothing that was done in here stays: hooks neither.

    Works alone and inside the effect's transaction. A raised exception passes through.
    """
    with ExitStack() as guards:
        for connection in connections.all():
            guards.enter_context(_GUARDS[connection.vendor](connection))
        yield


class _BegunReadOnly(transaction.Atomic):
    """A block that begins read-only in one round trip; the driver's own BEGIN would be one more."""

    def __enter__(self) -> None:
        connection: Any = transaction.get_connection(self.using)
        # The savepoint is what makes the setting final.
        begin = partial(libpq.execute, connection, "BEGIN READ ONLY; SAVEPOINT tollhouse_guard")
        connection._start_transaction_under_autocommit = begin
        try:
            super().__enter__()
        finally:
            del connection._start_transaction_under_autocommit
        # As after the driver's own BEGIN: what follows a raw ROLLBACK begins another transaction, which ends with the block.
        connection.connection._autocommit = False


@contextmanager
def _postgresql(connection: Any) -> Iterator[None]:
    """A read-only savepoint: PostgreSQL lets nothing inside a subtransaction lift it."""
    inside = connection.in_atomic_block
    block = transaction.Atomic if inside else _BegunReadOnly
    with block(using=connection.alias, savepoint=True, durable=False):
        if inside:
            libpq.execute(connection, "SET TRANSACTION READ ONLY")
        try:
            yield
        finally:
            transaction.set_rollback(True, using=connection.alias)


@contextmanager
def _sqlite(connection: Any) -> Iterator[None]:
    """`query_only` on the raw connection, on before the savepoint and off after its end; a connection that keeps it is dropped."""
    inside = connection.in_atomic_block
    with ExitStack() as ends:
        ends.callback(_lift, connection, inside=inside)
        if inside:
            _query_only(connection, "ON")
            ends.enter_context(transaction.atomic(using=connection.alias))
        else:
            ends.enter_context(_deferred(connection))
            _query_only(connection, "ON")
        try:
            yield
        finally:
            transaction.set_rollback(True, using=connection.alias)


@contextmanager
def _deferred(connection: Any) -> Iterator[None]:
    """A block that begins DEFERRED: with IMMEDIATE, as every other one begins, a read would wait for the writer."""
    block = transaction.atomic(using=connection.alias)
    connection.ensure_connection()
    mode, connection.transaction_mode = connection.transaction_mode, "DEFERRED"
    try:
        block.__enter__()
    finally:
        connection.transaction_mode = mode
    with ExitStack() as ends:
        ends.push(block)
        yield


def _query_only(connection: Any, state: str) -> None:
    connection.connection.execute(f"PRAGMA query_only = {state}")


def _lift(connection: Any, *, inside: bool) -> None:
    if connection.connection is None:
        return  # closed, and the next one begins without the flag
    try:
        _query_only(connection, "OFF")
    except Exception:
        _drop(connection)
        if inside:
            # The outer transaction is gone with its connection.
            raise


@contextmanager
def nothing_left_open() -> Iterator[None]:
    """A block that somebody else's code began in here and left open ends with its connection, which the database rolls back.

    Otherwise this thread would answer every later call from inside that transaction.
    """
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if connection.in_atomic_block:
                log.error("transaction_left_open", database=connection.alias)
                _drop(connection)


def _drop(connection: Any) -> None:
    """Close the connection in whatever state it is; the next use opens one in a clean state."""
    connection.in_atomic_block = False
    try:
        connection.close()
    finally:
        connection.connection = None


_GUARDS = {"postgresql": _postgresql, "sqlite": _sqlite}
