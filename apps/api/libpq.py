"""The few statements that every call sends to PostgreSQL, straight to libpq.

The cursors of Django and psycopg around a statement cost this process several times what the statement does, and let go of the
interpreter's lock six times on the way instead of once. Errors come out as Django's. Whoever watches the queries of a connection
(DEBUG, a test that counts, an `execute_wrapper`) still sees them: then a cursor is used.
"""

from typing import Any
from weakref import WeakKeyDictionary

from psycopg import OperationalError, errors, pq

_DONE = (pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK)

# The prepared statements that each connection of the driver knows.
_known: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()


def execute(connection: Any, statement: str) -> None:
    """Several statements may stand in one. `connection` is Django's."""
    connection.ensure_connection()
    if _is_watched(connection):
        with connection.cursor() as cursor:
            cursor.execute(statement)
        return
    with connection.wrap_database_errors:
        _done(connection, connection.connection.pgconn.exec_(statement.encode()))


def fetch_text(connection: Any, name: str, statement: str, argument: str | None) -> tuple[str | None, ...]:
    """The one row of a statement with one argument, `$1`, whose columns are all text.

    PostgreSQL plans it once a connection, under `name`: planning may take longer than executing.
    """
    connection.ensure_connection()
    known = _known.setdefault(connection.connection, set())
    if name not in known:
        execute(connection, f"PREPARE {name} (text) AS {statement}")
        known.add(name)
    if _is_watched(connection):
        with connection.cursor() as cursor:
            cursor.execute(f"EXECUTE {name} (%s)", [argument])
            return tuple(cursor.fetchone())
    with connection.wrap_database_errors:
        arguments = [None if argument is None else argument.encode()]
        row = _done(connection, connection.connection.pgconn.exec_prepared(name.encode(), arguments))
    values = (row.get_value(0, column) for column in range(row.nfields))
    return tuple(None if value is None else value.decode() for value in values)


def _is_watched(connection: Any) -> bool:
    return bool(connection.queries_logged or connection.execute_wrappers)


def _done(connection: Any, result: Any) -> Any:
    if result.status in _DONE:
        return result
    if connection.connection.pgconn.status != pq.ConnStatus.OK:
        raise OperationalError("The connection to the database is lost.")
    raise errors.error_from_result(result)
