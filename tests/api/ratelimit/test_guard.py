"""A store that is down: the local limit, no error, under 100 ms, two log lines, a try every 5 seconds (RL-4, G14)."""

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import psycopg
import pytest
import redis
from django.db import connection

from apps.api.ratelimit.bucket import Store
from apps.api.ratelimit.database import DatabaseStore
from apps.api.ratelimit.guard import GuardedStore
from apps.api.ratelimit.redis import RedisStore
from tests import services
from tests.api.ratelimit.conftest import make_bucket

A = make_bucket("a", budget=3)


@dataclass
class Limiter:
    """A guarded store on a clock that the test moves, and how long its slowest answer took."""

    shared: Store
    now: float = 1000.0
    slowest: float = 0.0
    guarded: GuardedStore = field(init=False)

    def __post_init__(self) -> None:
        self.guarded = GuardedStore("The store", self.shared, lambda: self.now)

    def admits(self) -> bool:
        begun = time.perf_counter()
        admitted = not self.guarded.take([(A, 1)])[0].wait
        self.slowest = max(self.slowest, time.perf_counter() - begun)
        return admitted


@pytest.fixture
def limiter(redis_server: services.Redis) -> Limiter:
    return Limiter(RedisStore(redis_server.url))


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.getMessage() for record in caplog.records if record.name == "apps.api.ratelimit.guard"]
    return [line.partition(",")[0] for line in found]


@pytest.mark.alone
def test_a_redis_that_dies_leaves_the_budget_of_one_process_and_comes_back(
    limiter: Limiter, redis_server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    assert limiter.admits()
    redis_server.kill()
    assert [limiter.admits() for _ in range(5)] == [True, True, True, False, False]
    assert limiter.slowest < 0.1
    assert lines(caplog) == ["The store is down"]

    redis_server.start()
    limiter.now += 4.9
    assert not limiter.admits()
    limiter.now += 0.2
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert lines(caplog) == ["The store is down", "The store is back"]


@pytest.mark.alone
def test_a_redis_that_stays_down_is_tried_every_five_seconds_without_another_line(
    limiter: Limiter, redis_server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    redis_server.kill()
    for _ in range(20):
        limiter.admits()
        limiter.now += 2
    assert limiter.slowest < 0.1
    assert lines(caplog) == ["The store is down"]


@pytest.mark.alone
def test_a_redis_that_hangs_counts_as_down_within_its_time(
    limiter: Limiter, redis_server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    limiter.admits()
    redis_server.pause()
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert limiter.slowest < 0.1
    assert lines(caplog) == ["The store is down"]
    redis_server.resume()
    limiter.now += 5
    assert limiter.admits()
    assert lines(caplog) == ["The store is down", "The store is back"]


def test_a_restarted_redis_is_not_an_outage(
    limiter: Limiter, redis_server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    limiter.admits()
    redis_server.stop()
    redis_server.start()
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert lines(caplog) == []


def test_a_redis_that_refuses_to_write_counts_as_down(
    limiter: Limiter, redis_server: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    limiter.admits()
    with redis.Redis.from_url(redis_server.url) as client:
        client.config_set("maxmemory", "1")
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert lines(caplog) == ["The store is down"]


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that answers no connection: its queue is full."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        waiting = [socket.socket() for _ in range(4)]
        for caller in waiting:
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]
        for caller in waiting:
            caller.close()


@pytest.mark.alone
def test_a_redis_that_answers_no_connection_costs_less_than_100_ms_once(silent_port: int) -> None:
    limiter = Limiter(RedisStore(f"redis://127.0.0.1:{silent_port}/0"))
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert 0.05 <= limiter.slowest < 0.1


def test_a_database_that_cuts_its_connections_leaves_the_local_budget_and_comes_back(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = Limiter(DatabaseStore())
    assert limiter.admits()
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT pg_terminate_backend(%s)", [connection.connection.info.backend_pid])
    assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    assert lines(caplog) == ["The store is down"]
    limiter.now += 5
    assert [limiter.admits() for _ in range(3)] == [True, True, False]
    assert lines(caplog) == ["The store is down", "The store is back"]


def test_a_database_that_became_read_only_leaves_the_local_budget(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    limiter = Limiter(DatabaseStore())
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    try:
        assert [limiter.admits() for _ in range(4)] == [True, True, True, False]
    finally:
        connection.close()
    assert lines(caplog) == ["The store is down"]


def test_looking_is_guarded_too(limiter: Limiter, redis_server: services.Redis) -> None:
    redis_server.kill()
    assert limiter.guarded.look([(A, 0)])[0].used == 0
