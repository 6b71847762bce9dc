"""The one statement that reads key, owner and settings: what a connection remembers of it never stands in a call's way."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.api import credentials, libpq
from tests.api import factories
from tests.api.factories import Machine


def _texts(machine: Machine) -> list[str]:
    with CaptureQueriesContext(connection) as queries:
        answer = machine.call("probe.echo")
    assert answer.status_code == 200
    return [query["sql"] for query in queries]


def test_a_connection_plans_the_statement_once(machine: Machine, postgres_url: str) -> None:
    connection.close()
    first, second = _texts(machine), _texts(machine)
    assert [text.split()[0] for text in first[:2]] == ["PREPARE", "EXECUTE"]
    assert second[0].startswith("EXECUTE")


def test_a_connection_that_forgot_the_statement_is_replaced(machine: Machine, postgres_url: str) -> None:
    machine.call("probe.echo")
    libpq.execute(connection, "DEALLOCATE ALL")
    assert machine.call("probe.echo").status_code == 200


def test_behind_a_pool_of_transactions_nothing_is_prepared(
    machine: Machine, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    assert _texts(machine)[0].startswith("SELECT")


@pytest.mark.sqlite
def test_the_row_has_the_same_types_on_both_databases(transactional_db: Any) -> None:
    key, text = factories.make_key(scopes=["probe:read"], networks=["192.0.2.0/24"])
    credentials.note_use(key.uuid, credentials.read(text))
    row = credentials.read(text).row
    key.refresh_from_db()
    assert row is not None
    assert (row["uuid"], row["family_id"]) == (key.uuid, key.family_id)
    assert (row["scopes"], row["networks"]) == (["probe:read"], ["192.0.2.0/24"])
    assert (row["last_used_at"], row["expires_at"]) == (key.last_used_at, None)
    assert row["requires_approval"] is False


def test_a_guarded_read_begins_in_one_round_trip(machine: Machine, postgres_url: str) -> None:
    machine.call("probe.echo")
    assert _texts(machine)[1:] == ["BEGIN READ ONLY; SAVEPOINT tollhouse_guard", "ROLLBACK"]
