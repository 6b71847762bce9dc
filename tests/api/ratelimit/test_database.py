"""What only the database store promises: a transaction of its own, a clock read under the lock, pruned rows."""

import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection, connections, transaction

from apps.api.models import Bucket as Row
from apps.api.ratelimit import database
from apps.api.ratelimit.bucket import Reading
from apps.api.ratelimit.database import DatabaseStore
from tests.api.ratelimit.conftest import LAST_SECOND, Clocked, make_bucket

A, B = make_bucket("a"), make_bucket("b", budget=3)


@pytest.fixture
def impatient(postgres_url: str) -> Iterator[str]:
    """Waiting for a lock fails after two seconds. The address of the database, for another connection."""
    with connection.cursor() as cursor:
        cursor.execute("SET lock_timeout = '2s'")
    yield postgres_url
    connection.close()


@pytest.mark.sqlite
def test_charging_inside_another_transaction_is_an_error(transactional_db: None) -> None:
    with transaction.atomic(), pytest.raises(RuntimeError):
        DatabaseStore().take([(A, 1)])


@pytest.mark.sqlite
def test_it_counts_on_the_clock_of_the_database(transactional_db: None) -> None:
    store = DatabaseStore()
    assert store.take([(A, 10)]) == (Reading(10, 61, 0),)
    assert store.take([(A, 1)])[0].wait in {60, 61}


@pytest.mark.sqlite
def test_rows_whose_slots_have_left_are_deleted_in_batches_of_a_minute_or_a_second(
    in_database: Clocked, monkeypatch: pytest.MonkeyPatch
) -> None:
    uptime = [0.0]
    store = DatabaseStore(clock=in_database.clock, monotonic=lambda: uptime[0])
    for number in range(5):
        store.take([(make_bucket(f"old{number}"), 1)])
    in_database.set_clock(LAST_SECOND + 300)
    monkeypatch.setattr(database, "PRUNE_ROWS", 3)
    left = []
    for uptime[0] in (59, 60, 60.9, 61):
        store.take([(A, 1)])
        left.append(Row.objects.count())
    assert left == [6, 3, 3, 1]


@pytest.mark.sqlite
def test_a_row_goes_only_when_its_last_slot_has_left(in_database: Clocked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "PRUNE_SECONDS", 0)
    store = DatabaseStore(clock=in_database.clock)
    store.take([(A, 10)])
    for passed in range(61):
        in_database.set_clock(LAST_SECOND + passed)
        store.take([(B, 0)])
        assert Row.objects.filter(name="a").exists()


def test_pruning_waits_for_no_row_that_another_holds(
    in_database: Clocked, impatient: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("held", "free"):
        in_database.store.take([(make_bucket(name), 1)])
    in_database.set_clock(LAST_SECOND + 300)
    monkeypatch.setattr(database, "PRUNE_SECONDS", 0)
    with psycopg.connect(impatient) as other:
        other.execute("SELECT 1 FROM api_bucket WHERE name = 'held' FOR UPDATE")
        DatabaseStore(clock=in_database.clock).take([(A, 1)])
    assert set(Row.objects.values_list("name", flat=True)) == {"held", "a"}


def test_the_clock_is_read_when_the_row_is_ours_not_when_the_wait_for_it_began(postgres_url: str) -> None:
    store, second = DatabaseStore(), "SELECT floor(extract(epoch FROM clock_timestamp()))"
    store.take([(A, 4)])

    def charge() -> None:
        store.take([(A, 6)])
        connections.close_all()

    waiting = threading.Thread(target=charge)
    with psycopg.connect(postgres_url) as other, psycopg.connect(postgres_url, autocommit=True) as watcher:
        other.execute("SELECT 1 FROM api_bucket WHERE name = 'a' FOR UPDATE")
        waiting.start()
        while not watcher.execute("SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'").fetchall():
            pass
        began = watcher.execute(second).fetchall()
        while watcher.execute(second).fetchall() == began:
            pass
    waiting.join()
    newest = max(int(slot) for slot in Row.objects.get(name="a").slots)
    assert newest > began[0][0]


def test_steps_that_name_the_same_buckets_the_other_way_round_never_block_each_other(postgres_url: str) -> None:
    big, other = make_bucket("a", budget=10**6), make_bucket("b", budget=10**6)
    store, failures = DatabaseStore(), list[Exception]()

    def charge(*, turned: bool) -> None:
        charges = [(other, 1), (big, 1)] if turned else [(big, 1), (other, 1)]
        try:
            for _ in range(100):
                store.take(charges)
        except Exception as failure:
            failures.append(failure)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=charge, kwargs={"turned": bool(number % 2)}) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert [reading.used for reading in store.look([(big, 0), (other, 0)])] == [800, 800]
