"""The note of a key's last use, where the database is busy (KY-2)."""

import contextlib
import gc
import sqlite3
from collections.abc import Iterator

import pytest
from django.db import connection

from apps.api import credentials
from apps.api.credentials import Facts
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def another_writer() -> Iterator[None]:
    """Holds SQLite's write lock."""
    if connection.vendor != "sqlite":
        pytest.skip("needs SQLite")
    with contextlib.closing(sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Only what is freed at once is freed."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _cursors() -> int:
    return sum(
        issubclass(type(thing), sqlite3.Cursor) for thing in gc.get_objects()
    )  # isinstance would wake lazy objects


@pytest.mark.usefixtures("no_collector")
def test_a_busy_database_is_not_waited_for_and_no_cursor_is_left_behind(request: pytest.FixtureRequest) -> None:
    key, _ = factories.make_key()
    request.getfixturevalue("another_writer")
    before = _cursors()
    credentials.note_use(key.pk, Facts(settings="{}", row={"last_used_at": None}))
    # One that another thread's collector frees waits for this connection: with 8 writers the program stood still for 20 s.
    assert _cursors() == before
    key.refresh_from_db()
    assert key.last_used_at is None
