"""What all three stores promise, on a clock that the test sets (RL-2, RL-4, G13)."""

import uuid
from collections import defaultdict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.api.ratelimit.bucket import Bucket, Reading
from tests.api.ratelimit.conftest import LAST_SECOND, Clocked, make_bucket

pytestmark = pytest.mark.sqlite

A, B = make_bucket("a"), make_bucket("b", budget=3)


def test_an_untouched_bucket_has_nothing_in_use_and_lets_the_whole_budget_in(clocked: Clocked) -> None:
    assert clocked.store.look([(A, 0)]) == (Reading(0, 0, 0),)
    assert clocked.store.take([(A, 10)]) == (Reading(10, 61, 0),)


def test_the_last_unit_is_usable_and_no_unit_more(clocked: Clocked) -> None:
    for _ in range(9):
        clocked.store.take([(A, 1)])
    assert clocked.store.take([(A, 1)]) == (Reading(10, 61, 0),)
    assert clocked.store.take([(A, 1)]) == (Reading(10, 61, 61),)


def test_a_refused_charge_takes_nothing_so_a_smaller_one_still_fits(clocked: Clocked) -> None:
    clocked.store.take([(A, 8)])
    assert clocked.store.take([(A, 5)]) == (Reading(8, 61, 61),)
    assert clocked.store.take([(A, 1)]) == (Reading(9, 61, 0),)
    assert clocked.store.take([(A, 1)]) == (Reading(10, 61, 0),)


@pytest.mark.parametrize("step", [[(A, 1), (B, 1)], [(B, 1), (A, 1)]])
def test_one_bucket_that_refuses_leaves_the_others_of_its_step_untouched(
    clocked: Clocked, step: list[tuple[Bucket, int]]
) -> None:
    clocked.store.take([(B, 3)])
    assert {bucket.name: reading for (bucket, _), reading in zip(step, clocked.store.take(step), strict=True)} == {
        "a": Reading(0, 0, 0),
        "b": Reading(3, 61, 61),
    }
    assert clocked.store.look([(A, 0)]) == (Reading(0, 0, 0),)


def test_zero_units_read_a_bucket_even_a_spent_one_while_the_others_are_charged(clocked: Clocked) -> None:
    clocked.store.take([(B, 3)])
    assert clocked.store.take([(A, 2), (B, 0)]) == (Reading(2, 61, 0), Reading(3, 61, 0))


def test_a_slot_counts_until_it_has_left_whole(clocked: Clocked) -> None:
    clocked.store.take([(A, 10)])
    clocked.set_clock(LAST_SECOND + 60.9)
    assert clocked.store.take([(A, 1)]) == (Reading(10, 1, 1),)
    clocked.set_clock(LAST_SECOND + 61)
    assert clocked.store.take([(A, 1)]) == (Reading(1, 61, 0),)


def test_a_minutes_edge_gives_nothing_back(clocked: Clocked) -> None:
    clocked.store.take([(A, 10)])
    clocked.set_clock(LAST_SECOND + 1)
    assert clocked.store.take([(A, 1)])[0].wait == 60


def test_looking_takes_nothing(clocked: Clocked) -> None:
    clocked.store.take([(A, 9)])
    for _ in range(3):
        assert clocked.store.look([(A, 2)]) == (Reading(9, 61, 61),)
    assert clocked.store.take([(A, 1)])[0].wait == 0


def test_a_clock_that_was_set_back_gives_nothing_away(clocked: Clocked) -> None:
    clocked.store.take([(A, 4)])
    clocked.set_clock(LAST_SECOND + 1)
    clocked.store.take([(A, 5)])
    clocked.set_clock(LAST_SECOND - 30)
    assert clocked.store.take([(A, 1)])[0].used == 10
    assert clocked.store.take([(A, 4)])[0].wait > 60
    clocked.set_clock(LAST_SECOND + 62)
    assert clocked.store.take([(A, 10)])[0].wait == 0


def test_a_clock_that_was_set_back_by_an_hour_withholds_nothing_for_an_hour(clocked: Clocked) -> None:
    clocked.store.take([(A, 10)])
    clocked.set_clock(LAST_SECOND - 3600)
    assert clocked.store.take([(A, 10)]) == (Reading(10, 61, 0),)


def test_a_budget_that_was_lowered_below_what_is_in_use_waits_for_enough_to_leave(clocked: Clocked) -> None:
    clocked.store.take([(A, 4)])
    clocked.set_clock(LAST_SECOND + 10)
    clocked.store.take([(A, 5)])
    lowered = make_bucket("a", budget=5)
    assert clocked.store.take([(lowered, 1)]) == (Reading(9, 51, 61),)
    clocked.set_clock(LAST_SECOND + 71)
    assert clocked.store.take([(lowered, 5)]) == (Reading(5, 61, 0),)


class Model:
    """The rule said plainly: every admission is remembered, and the sum is made anew each time."""

    def __init__(self) -> None:
        self.taken: dict[str, list[tuple[float, int]]] = defaultdict(list)

    def used(self, bucket: Bucket, now: float) -> int:
        return sum(units for at, units in self.taken[bucket.name] if int(at) >= int(now) - bucket.seconds)

    def fits(self, bucket: Bucket, units: int, now: float) -> bool:
        return not units or self.used(bucket, now) + units <= bucket.budget

    def reading(self, bucket: Bucket, units: int, now: float) -> Reading:
        slots = [int(at) for at, _ in self.taken[bucket.name] if int(at) >= int(now) - bucket.seconds]
        reset = min(slots) + bucket.seconds + 1 - int(now) if slots else 0
        wait = next(seconds for seconds in range(63) if self.fits(bucket, units, int(now) + seconds))
        return Reading(self.used(bucket, now), reset, wait)

    def take(self, charges: list[tuple[Bucket, int]], now: float) -> tuple[Reading, ...]:
        refused = tuple(self.reading(bucket, units, now) for bucket, units in charges)
        if any(reading.wait for reading in refused):
            return refused
        for bucket, units in charges:
            if units:
                self.taken[bucket.name].append((now, units))
        return tuple(self.reading(bucket, 0, now) for bucket, _ in charges)

    def most_in_a_span(self, bucket: Bucket) -> int:
        """The most units in any span of the bucket's seconds: it is enough to begin one at each admission."""
        taken = self.taken[bucket.name]
        return max(
            (sum(u for at, u in taken if start <= at <= start + bucket.seconds) for start, _ in taken), default=0
        )


SECONDS_PASSED = st.one_of(st.just(0.0), st.floats(0, 3), st.floats(0, 130), st.sampled_from([1.0, 59.0, 60.0, 61.0]))
STEPS = st.lists(st.tuples(SECONDS_PASSED, st.integers(0, 7), st.integers(0, 4)), max_size=25)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_history_of_two_buckets_is_decided_as_the_rule_says(
    clocked: Clocked, steps: list[tuple[float, int, int]]
) -> None:
    model, now = Model(), float(LAST_SECOND)
    first, second = make_bucket(f"x:{uuid.uuid4()}", budget=7), make_bucket(f"y:{uuid.uuid4()}", budget=4)
    for passed, units_of_first, units_of_second in steps:
        now += passed
        clocked.set_clock(now)
        charges = [(first, units_of_first), (second, units_of_second)]
        assert clocked.store.take(charges) == model.take(charges, now)
    assert model.most_in_a_span(first) <= first.budget
    assert model.most_in_a_span(second) <= second.budget


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS, units=st.integers(1, 7))
def test_a_wait_is_exact_one_second_less_is_too_short(
    clocked: Clocked, steps: list[tuple[float, int, int]], units: int
) -> None:
    now, bucket = float(LAST_SECOND), make_bucket(f"x:{uuid.uuid4()}", budget=7)
    for passed, units_of_step, _ in steps:
        now += passed
        clocked.set_clock(now)
        clocked.store.take([(bucket, units_of_step)])
    wait = clocked.store.look([(bucket, units)])[0].wait
    if wait:
        clocked.set_clock(now + wait - 1)
        assert clocked.store.take([(bucket, units)])[0].wait == 1
    clocked.set_clock(now + wait)
    assert clocked.store.take([(bucket, units)])[0].wait == 0
