"""The cache in Redis."""

from typing import Any

import pytest
from django.core.cache import cache


def test_one_client_serves_every_command(redis_url: str) -> None:
    made: Any = cache
    assert made._cache.get_client(write=True) is made._cache.get_client(write=True)


def test_a_count_keeps_the_expiry_of_its_key(redis_url: str) -> None:
    made: Any = cache
    cache.add("counted", 1, timeout=60)
    assert (cache.incr("counted"), cache.incr("counted", 5), cache.get("counted")) == (2, 7, 7)
    assert 0 < made._cache.get_client().ttl(cache.make_key("counted")) <= 60


def test_what_is_not_there_is_not_counted(redis_url: str) -> None:
    with pytest.raises(ValueError, match="not found"):
        cache.incr("nothing")
    assert cache.get("nothing") is None
