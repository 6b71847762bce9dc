"""The cache in Redis."""

from typing import Any

from django.core.cache import cache


def test_one_client_serves_every_command(redis_url: str) -> None:
    made: Any = cache
    assert cache.add("counted", 1)
    assert cache.incr("counted") == 2
    assert made._cache.get_client(write=True) is made._cache.get_client(write=True)
