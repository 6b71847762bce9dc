"""Never more than the budget, however many processes and threads ask at once (RL-4, G11).

The harness is proved first: it must catch limiters that are known to be wrong.
"""

from collections.abc import Iterator

import psycopg
import pytest
import redis
from django.db import connection

from apps.api.models import Bucket as Row
from tests.api.ratelimit.conftest import LAST_SECOND
from tests.api.ratelimit.storm import BUDGET, storm

pytestmark = pytest.mark.alone

CALLS = 1000


@pytest.fixture
def with_redis(redis_client: redis.Redis, process_environment: dict[str, str], redis_url: str) -> dict[str, str]:
    return {**process_environment, "REDIS_URL": redis_url, "EMBEDDED": "0"}


@pytest.fixture
def with_database(process_environment: dict[str, str], postgres_url: str) -> dict[str, str]:
    return {**process_environment, "REDIS_URL": "", "EMBEDDED": "0"}


@pytest.fixture
def with_memory(process_environment: dict[str, str]) -> dict[str, str]:
    return {**process_environment, "REDIS_URL": "", "EMBEDDED": "1"}


@pytest.fixture
def sequence(postgres_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(postgres_url, autocommit=True) as watcher:
        watcher.execute("CREATE SEQUENCE test_clock")
        yield watcher
        watcher.execute("DROP SEQUENCE test_clock")


def test_the_harness_catches_a_racy_limiter_in_redis(with_redis: dict[str, str]) -> None:
    with storm("racy_redis", with_redis) as callers:
        assert callers.admitted_of(CALLS) > BUDGET


def test_the_harness_catches_a_racy_limiter_in_the_database(with_database: dict[str, str]) -> None:
    Row.objects.create(name="storm:racy", slots={}, dead_minute=0)
    with storm("racy_database", with_database) as callers:
        assert callers.admitted_of(CALLS) > BUDGET


def test_the_harness_catches_a_limiter_that_starts_anew_with_each_minute(
    with_redis: dict[str, str], redis_client: redis.Redis
) -> None:
    redis_client.set("test:clock", LAST_SECOND)
    with storm("fixed_window_redis", with_redis) as callers:
        assert callers.admitted_of(CALLS) == BUDGET
        redis_client.set("test:clock", LAST_SECOND + 1)
        assert callers.admitted_of(CALLS) == BUDGET


def test_redis_admits_exactly_the_budget(with_redis: dict[str, str]) -> None:
    with storm("configured", with_redis) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


def test_postgresql_admits_exactly_the_budget(with_database: dict[str, str]) -> None:
    with storm("configured", with_database) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


@pytest.mark.sqlite
def test_sqlite_admits_exactly_the_budget_to_the_threads_of_a_process(process_environment: dict[str, str]) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("the suite on PostgreSQL")
    with storm("configured", {**process_environment, "EMBEDDED": "0"}, processes=1) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


@pytest.mark.sqlite
def test_memory_admits_exactly_the_budget_to_the_threads_of_a_process(with_memory: dict[str, str]) -> None:
    with storm("configured", with_memory, processes=1) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


def test_redis_admits_exactly_the_smaller_budget_of_two_buckets(with_redis: dict[str, str]) -> None:
    with storm("two_buckets", with_redis) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


def test_postgresql_admits_exactly_the_smaller_budget_of_two_buckets(with_database: dict[str, str]) -> None:
    with storm("two_buckets", with_database) as callers:
        assert callers.admitted_of(CALLS) == BUDGET


def test_redis_admits_exactly_the_budget_across_a_minutes_edge(
    with_redis: dict[str, str], redis_client: redis.Redis
) -> None:
    redis_client.set("test:clock", LAST_SECOND)
    with storm("redis_on_a_set_clock", with_redis) as callers:
        assert callers.admitted_of(60) == 60
        callers.begin(CALLS)
        redis_client.set("test:clock", LAST_SECOND + 1)
        assert callers.admitted() == BUDGET - 60
        redis_client.set("test:clock", LAST_SECOND + 60)
        assert callers.admitted_of(CALLS) == 0
        redis_client.set("test:clock", LAST_SECOND + 62)
        assert callers.admitted_of(CALLS) == BUDGET


def test_postgresql_admits_exactly_the_budget_across_a_minutes_edge(
    with_database: dict[str, str], sequence: psycopg.Connection
) -> None:
    sequence.execute("SELECT setval('test_clock', %s)", [LAST_SECOND])
    with storm("database_on_a_set_clock", with_database) as callers:
        assert callers.admitted_of(60) == 60
        callers.begin(CALLS)
        sequence.execute("SELECT setval('test_clock', %s)", [LAST_SECOND + 1])
        assert callers.admitted() == BUDGET - 60
        sequence.execute("SELECT setval('test_clock', %s)", [LAST_SECOND + 60])
        assert callers.admitted_of(CALLS) == 0
        sequence.execute("SELECT setval('test_clock', %s)", [LAST_SECOND + 62])
        assert callers.admitted_of(CALLS) == BUDGET
