"""The flood limit of a door that has no price: failed authentications by network, opened sockets (RL-6, KY-5).

django-ratelimit counts in the cache. While the cache is down each process counts on its own, with the same limit.
"""

import redis
from django.db import DatabaseError
from django_ratelimit import core

from apps.api.ratelimit.bucket import Bucket
from apps.api.ratelimit.guard import Guard
from apps.api.ratelimit.memory import MemoryStore

FAILURES = 20
PERIOD_SECONDS = 60


class _NotCounted(Exception):
    """The cache answered, but kept nothing."""


# What caches raise: Redis, the sockets of any, the database cache.
ERRORS = (redis.RedisError, OSError, DatabaseError, _NotCounted)

_guard = Guard("The cache of the door limits", ERRORS)
_local = MemoryStore()


def failed(*, group: str, network: str) -> int | None:
    """Count a failure. None within the limit of the group; past it the seconds that the network must wait.

    Only failures come here, so whoever succeeds passes however many of the network's others fail.
    """
    return passed(group=group, caller=network, most=FAILURES)


def passed(*, group: str, caller: str, most: int) -> int | None:
    """Count one more of the caller's. None within so many a minute; past them the seconds to wait."""
    return _guard.ask(lambda: _counted(group, caller, most), lambda: _counted_here(group, caller, most))


def _counted(group: str, caller: str, most: int) -> int | None:
    usage = core.get_usage(
        None, group=group, key=lambda group, request: caller, rate=(most, PERIOD_SECONDS), increment=True
    )
    if usage is None:  # RATELIMIT_ENABLE = False
        return None
    if not usage["limit"]:
        raise _NotCounted
    return max(1, usage["time_left"]) if usage["should_limit"] else None


def _counted_here(group: str, caller: str, most: int) -> int | None:
    bucket = Bucket(policy="door", name=f"{group}:{caller}", budget=most, seconds=PERIOD_SECONDS)
    return _local.take([(bucket, 1)])[0].wait or None
