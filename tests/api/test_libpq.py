"""Statements straight to libpq: errors are Django's, and nobody who watches the queries misses one."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from django.db import DataError, OperationalError, ProgrammingError, connection
from django.test.utils import CaptureQueriesContext

from apps.api import libpq
from tests.api.factories import Machine

NAME, STATEMENT = "tollhouse_test", "SELECT $1, 'ä', CAST(NULL AS text)"


def _end_backend(url: str) -> None:
    connection.ensure_connection()
    process = connection.connection.info.backend_pid
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [process])


@pytest.mark.parametrize("argument", ["x", "ü'", None])
def test_a_row_of_text_comes_back_watched_or_not(postgres_url: str, argument: str | None) -> None:
    unwatched = libpq.fetch_text(connection, NAME, STATEMENT, argument)
    with CaptureQueriesContext(connection) as queries:
        watched = libpq.fetch_text(connection, NAME, STATEMENT, argument)
    assert unwatched == watched == (argument, "ä", None)
    assert len(queries) == 1


def test_an_execute_wrapper_sees_the_statements(postgres_url: str) -> None:
    seen: list[str] = []

    def watch(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        seen.append(sql)
        return execute(sql, *rest)

    with connection.execute_wrapper(watch):
        libpq.fetch_text(connection, NAME, STATEMENT, "x")
        libpq.execute(connection, "SELECT 1")
    assert [sql.split()[0] for sql in seen] == ["PREPARE", "EXECUTE", "SELECT"]


def test_an_error_has_the_class_and_the_state_that_the_driver_gives_it(postgres_url: str) -> None:
    with pytest.raises(DataError) as raised:
        libpq.execute(connection, "SELECT 1 / 0")
    assert getattr(raised.value.__cause__, "sqlstate", None) == "22012"


def test_a_forgotten_statement_is_an_error(postgres_url: str) -> None:
    libpq.fetch_text(connection, NAME, STATEMENT, "x")
    libpq.execute(connection, "DEALLOCATE ALL")
    with pytest.raises(ProgrammingError):
        libpq.fetch_text(connection, NAME, STATEMENT, "x")


def test_a_lost_connection_is_an_operational_error(postgres_url: str) -> None:
    _end_backend(postgres_url)
    with pytest.raises(OperationalError):
        libpq.execute(connection, "SELECT 1")
    with pytest.raises(OperationalError):
        libpq.execute(connection, "SELECT 1")
    connection.close()


def test_a_call_outlives_the_connection_that_its_key_was_to_be_read_on(machine: Machine, postgres_url: str) -> None:
    machine.call("probe.echo")
    _end_backend(postgres_url)
    assert machine.call("probe.echo").status_code == 200
