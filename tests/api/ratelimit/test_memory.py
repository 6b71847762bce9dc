"""The store in this process."""

import pytest

from apps.api.ratelimit.memory import MemoryStore
from tests.api.ratelimit.conftest import LAST_SECOND, Clocked, make_bucket

pytestmark = pytest.mark.sqlite


def test_buckets_whose_slots_have_left_are_dropped(memory: Clocked) -> None:
    for number in range(1000):
        memory.store.take([(make_bucket(str(number)), 1)])
    memory.set_clock(LAST_SECOND + 30)
    memory.store.take([(make_bucket("late"), 1)])
    memory.set_clock(LAST_SECOND + 61)
    memory.store.take([(make_bucket("later"), 1)])
    assert isinstance(memory.store, MemoryStore)
    assert len(memory.store) == 2


def test_a_bucket_that_is_charged_again_is_kept(memory: Clocked) -> None:
    memory.store.take([(make_bucket("a"), 1)])
    memory.store.take([(make_bucket("b"), 1)])
    memory.set_clock(LAST_SECOND + 60)
    memory.store.take([(make_bucket("a"), 1)])
    memory.set_clock(LAST_SECOND + 61)
    assert memory.store.take([(make_bucket("a"), 1)])[0].used == 2
