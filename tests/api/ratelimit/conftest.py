"""The three stores, each on a clock that the test sets."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import redis
from django.db import connection

from apps.api.ratelimit.bucket import Bucket, Store
from apps.api.ratelimit.database import DatabaseStore
from apps.api.ratelimit.memory import MemoryStore
from apps.api.ratelimit.redis import RedisStore

# The last second of a minute.
LAST_SECOND = 1_700_000_039


@dataclass(frozen=True)
class Clocked:
    store: Store
    set_clock: Callable[[float], object]
    clock: str = ""


def make_bucket(name: str = "a", budget: int = 10, policy: str = "key") -> Bucket:
    return Bucket(policy=policy, name=name, budget=budget)


@pytest.fixture
def memory() -> Clocked:
    box = [float(LAST_SECOND)]
    return Clocked(MemoryStore(lambda: box[0]), lambda now: box.__setitem__(0, now))


@pytest.fixture
def redis_client(redis_url: str) -> Iterator[redis.Redis]:
    """A client of the database that the settings name; the database is empty before and after."""
    with redis.Redis.from_url(redis_url) as client:
        client.flushdb()
        yield client
        client.flushdb()


@pytest.fixture
def in_redis(redis_client: redis.Redis, redis_url: str) -> Clocked:
    def set_clock(now: float) -> None:
        redis_client.set("test:clock", int(now))

    set_clock(LAST_SECOND)
    return Clocked(RedisStore(redis_url, clock="redis.call('GET', 'test:clock')"), set_clock)


@pytest.fixture
def in_database(transactional_db: None) -> Clocked:
    box = [LAST_SECOND]

    def set_clock(now: float) -> None:
        box[0] = int(now)
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('test.clock', %s, false)", [str(box[0])])

    set_clock(LAST_SECOND)
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        connection.connection.create_function("test_clock", 0, lambda: box[0])
        clock = "test_clock()"
    else:
        clock = "CAST(current_setting('test.clock') AS bigint)"
    return Clocked(DatabaseStore(clock=clock), set_clock, clock)


@pytest.fixture(params=["memory", "in_redis", "in_database"])
def clocked(request: pytest.FixtureRequest) -> Any:
    if request.param == "in_redis" and connection.vendor == "sqlite":
        pytest.skip("the SQLite part has no Redis")
    return request.getfixturevalue(request.param)
