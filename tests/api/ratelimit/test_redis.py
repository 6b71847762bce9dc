"""What only the Redis store promises: one call, its clock, an expiry on every key (G12)."""

import redis

from apps.api.ratelimit.redis import RedisStore
from tests.api.ratelimit.conftest import make_bucket

A, B = make_bucket("a"), make_bucket("b", budget=3)


def test_a_step_over_two_buckets_is_one_call(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url)
    store.take([(A, 1), (B, 1)])
    redis_client.config_resetstat()
    store.take([(A, 1), (B, 1)])
    assert redis_client.info("commandstats")["cmdstat_evalsha"]["calls"] == 1


def test_every_key_expires_whatever_happened_to_it(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url)
    for units in (1, 3, 2, 3):
        store.take([(A, units), (B, 1)])
        store.look([(A, 1)])
        assert all(0 < redis_client.ttl(key) <= 61 for key in redis_client.scan_iter("*"))
    assert redis_client.dbsize() == 2


def test_a_refusal_writes_nothing(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url)
    store.take([(B, 3)])
    redis_client.pexpire("ratelimit:b", 30_000)
    before = redis_client.get("ratelimit:b")
    store.take([(B, 1), (A, 1)])
    assert (redis_client.get("ratelimit:b"), redis_client.exists("ratelimit:a")) == (before, 0)
    assert redis_client.pttl("ratelimit:b") <= 30_000


def test_a_flushed_script_is_sent_again(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url)
    store.take([(A, 1)])
    redis_client.script_flush()
    assert store.take([(A, 1)])[0].used == 2


def test_a_full_window_is_no_bigger_than_its_61_slots(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url, clock="redis.call('GET', 'test:clock')")
    bucket = make_bucket(budget=10**9)
    for now in range(1000, 1200):
        redis_client.set("test:clock", now)
        store.take([(bucket, 1)])
        store.take([(bucket, 1)])
    assert store.look([(bucket, 0)])[0].used == 122
    assert redis_client.strlen("ratelimit:a") == 8 + 61 * 16


def test_its_clock_is_that_of_redis(redis_client: redis.Redis, redis_url: str) -> None:
    store = RedisStore(redis_url)
    before = redis_client.time()[0]
    store.take([(A, 10)])
    wait = store.take([(A, 1)])[0].wait
    assert before + 61 - redis_client.time()[0] <= wait <= 61
