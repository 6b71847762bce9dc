"""The door's limit while the cache is down: the same, in this process, and never an error."""

from typing import Any

import pytest
import time_machine
from django.core.cache.backends.base import BaseCache
from django.test import RequestFactory
from pytest_django import Settings

from apps.accounts import doors

NOBODY_LISTENS = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": "redis://127.0.0.1:1/0",
        "OPTIONS": {"socket_connect_timeout": 0.05, "socket_timeout": 0.25},
    }
}


class ForgetfulCache(BaseCache):
    """Takes everything and keeps nothing, as a server without memory."""

    def __init__(self, location: str, params: dict[str, Any]) -> None:
        super().__init__(params)

    def add(self, *_: Any, **__: Any) -> bool:
        return False

    def incr(self, key: Any, delta: int = 1, version: int | None = None) -> int:
        raise ValueError(key)


def _knocks(account: str, times: int, *, remote: str) -> list[bool]:
    request = RequestFactory().post("/sign-in/", REMOTE_ADDR=remote)
    return [doors.knock(request, account) is None for _ in range(times)]


def test_while_the_cache_is_down_this_process_counts_to_the_same_limit(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.CACHES = NOBODY_LISTENS
    limit = doors.ACCOUNT.attempts
    with time_machine.travel("2031-01-01T00:00:00Z", tick=False) as clock:
        assert _knocks("member@example.org", limit + 2, remote="192.0.2.1") == [True] * limit + [False] * 2
        assert _knocks("bob@example.org", 1, remote="192.0.2.1") == [True]
        clock.shift(doors.ACCOUNT.seconds)
        assert _knocks("member@example.org", 1, remote="192.0.2.1") == [True]
    assert "The cache is down" in caplog.text


def test_while_the_cache_is_down_a_network_has_its_limit_too(settings: Settings) -> None:
    settings.CACHES = NOBODY_LISTENS
    limit = doors.NETWORK.attempts
    with time_machine.travel("2032-01-01T00:00:00Z", tick=False):
        admitted = [_knocks(f"{number}@example.org", 1, remote="192.0.2.2") == [True] for number in range(limit + 1)]
    assert admitted == [True] * limit + [False]


def test_a_cache_that_keeps_nothing_is_as_one_that_is_down(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": f"{__name__}.ForgetfulCache"}}
    limit = doors.ACCOUNT.attempts
    with time_machine.travel("2033-01-01T00:00:00Z", tick=False):
        assert _knocks("member@example.org", limit + 1, remote="192.0.2.3") == [True] * limit + [False]


def test_the_librarys_own_switch_opens_the_door(settings: Settings) -> None:
    settings.RATELIMIT_ENABLE = False
    assert all(_knocks("member@example.org", doors.ACCOUNT.attempts + 1, remote="192.0.2.4"))
