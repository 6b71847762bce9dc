"""The flood limit of failed authentications (RL-6)."""

import threading
import time
import uuid

import pytest
from pytest_django import Settings

from apps.api.ratelimit import doors
from apps.api.ratelimit.guard import Guard
from tests import services


def fail(network: str, *, group: str = "test", times: int = 1) -> list[int | None]:
    return [doors.failed(group=group, network=network) for _ in range(times)]


@pytest.mark.sqlite
def test_failures_within_the_limit_wait_for_nothing_and_the_next_one_waits() -> None:
    network = str(uuid.uuid4())
    assert fail(network, times=doors.FAILURES) == [None] * doors.FAILURES
    (wait,) = fail(network)
    assert wait is not None
    assert 1 <= wait <= doors.PERIOD_SECONDS


@pytest.mark.sqlite
def test_another_network_and_another_door_are_not_touched() -> None:
    network = str(uuid.uuid4())
    fail(network, times=doors.FAILURES + 1)
    assert fail(str(uuid.uuid4())) == [None]
    assert fail(network, group="other") == [None]


@pytest.mark.alone
@pytest.mark.sqlite
def test_parallel_failures_are_all_counted() -> None:
    network, waits = str(uuid.uuid4()), list[int | None]()
    threads = [threading.Thread(target=lambda: waits.extend(fail(network, times=10))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert waits.count(None) == doors.FAILURES


@pytest.fixture
def cache_of_its_own(
    settings: Settings, redis_server: services.Redis, monkeypatch: pytest.MonkeyPatch
) -> services.Redis:
    """The cache in a Redis of the test's own, with the options of the settings; the outage stays in the test."""
    monkeypatch.setattr(doors, "_guard", Guard("The cache", doors.ERRORS))
    settings.CACHES = {"default": {**settings.CACHES["default"], "LOCATION": redis_server.url}}
    return redis_server


@pytest.mark.alone
def test_a_cache_that_is_down_leaves_the_same_limit_in_this_process(
    redis_url: str, cache_of_its_own: services.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    network = str(uuid.uuid4())
    assert fail(network) == [None]
    cache_of_its_own.kill()
    begun = time.perf_counter()
    waits = fail(network, times=doors.FAILURES + 1)
    assert time.perf_counter() - begun < 0.1
    assert waits[:-1] == [None] * doors.FAILURES
    assert waits[-1] is not None
    assert len([record for record in caplog.records if record.name == "apps.api.ratelimit.guard"]) == 1
