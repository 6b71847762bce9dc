"""The public functions: verdicts, levels and the two header fields (RL-2 to RL-5, G13)."""

import uuid

import pytest
from pytest_django import Settings

from apps.api import ratelimit
from apps.api.ratelimit import Bucket, Level, stores
from apps.api.ratelimit.guard import GuardedStore
from apps.api.ratelimit.memory import MemoryStore

pytestmark = pytest.mark.sqlite


@pytest.fixture(autouse=True)
def _in_memory(settings: Settings) -> None:
    settings.REDIS_URL = ""
    settings.EMBEDDED = True


def make_bucket(budget: int = 10, policy: str = "key") -> Bucket:
    return Bucket(policy=policy, name=f"{policy}:{uuid.uuid4()}", budget=budget)


def test_an_admitted_charge_tells_what_is_left_of_every_bucket() -> None:
    key, person = make_bucket(), make_bucket(300, "person")
    verdict = ratelimit.charge([(key, 3), (person, 1)])
    assert (verdict.admitted, verdict.retry_after) == (True, None)
    assert verdict.levels == (
        Level(bucket=key, remaining=7, reset_seconds=61),
        Level(bucket=person, remaining=299, reset_seconds=61),
    )


def test_a_refused_charge_tells_how_long_to_wait() -> None:
    bucket = make_bucket()
    ratelimit.charge([(bucket, 8)])
    refused = ratelimit.charge([(bucket, 5)])
    assert (refused.admitted, refused.levels[0].remaining) == (False, 2)
    assert refused.retry_after in {60, 61}
    assert ratelimit.charge([(bucket, 1)]).admitted


def test_units_above_the_budget_are_never_admitted_and_take_nothing_from_any_bucket() -> None:
    small, large = make_bucket(4), make_bucket(100)
    verdict = ratelimit.charge([(large, 5), (small, 5)])
    assert (verdict.admitted, verdict.retry_after) == (False, None)
    assert [level.remaining for level in verdict.levels] == [100, 4]


def test_units_above_the_budget_stay_never_when_another_bucket_only_has_to_wait() -> None:
    small, spent = make_bucket(4), make_bucket(1)
    ratelimit.charge([(spent, 1)])
    assert ratelimit.charge([(spent, 1), (small, 5)]).retry_after is None


def test_the_whole_budget_may_go_at_once() -> None:
    bucket = make_bucket()
    assert ratelimit.charge([(bucket, 10)]).levels[0].remaining == 0


def test_levels_charge_nothing_and_an_unused_bucket_has_no_reset() -> None:
    bucket = make_bucket()
    assert ratelimit.levels([bucket]) == ratelimit.levels([bucket])
    assert ratelimit.levels([bucket]) == (Level(bucket=bucket, remaining=10, reset_seconds=0),)


def test_a_lowered_budget_leaves_nothing_rather_than_less_than_nothing() -> None:
    bucket = make_bucket()
    ratelimit.charge([(bucket, 10)])
    lowered = Bucket(policy="key", name=bucket.name, budget=5)
    assert ratelimit.levels([lowered])[0].remaining == 0


def test_a_step_without_buckets_is_admitted() -> None:
    assert ratelimit.charge([]) == ratelimit.Verdict(admitted=True, levels=(), retry_after=None)


def test_a_step_that_names_a_bucket_twice_or_gives_units_back_is_an_error() -> None:
    bucket = make_bucket()
    for step in ([(bucket, 1), (bucket, 1)], [(bucket, -1)]):
        with pytest.raises(ValueError, match="A step"):
            ratelimit.charge(step)


def test_headers_name_every_policy_in_structured_fields() -> None:
    key = Level(bucket=make_bucket(600), remaining=597, reset_seconds=60)
    person = Level(bucket=make_bucket(300, "person"), remaining=0, reset_seconds=7)
    assert ratelimit.headers([key, person]) == {
        "RateLimit-Policy": '"key";q=600;w=60, "person";q=300;w=60',
        "RateLimit": '"key";r=597;t=60, "person";r=0;t=7',
    }


def test_a_bucket_charged_in_two_steps_is_told_once_as_it_stood_last() -> None:
    network = make_bucket(60, "network")
    first = Level(bucket=network, remaining=59, reset_seconds=61)
    last = Level(bucket=network, remaining=55, reset_seconds=61)
    assert ratelimit.headers([first, last])["RateLimit"] == '"network";r=55;t=61'


def test_without_a_charge_there_are_no_headers() -> None:
    assert ratelimit.headers([]) == {}


def test_redis_goes_before_memory_and_memory_before_the_database(settings: Settings) -> None:
    assert isinstance(stores.current(), MemoryStore)
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    of_redis = stores.current()
    settings.REDIS_URL, settings.EMBEDDED = "", False
    of_database = stores.current()
    assert isinstance(of_redis, GuardedStore)
    assert isinstance(of_database, GuardedStore)
    assert of_redis is not of_database
