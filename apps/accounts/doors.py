"""The flood limit of sign-in (PS-7, RL-6): attempts per network and per account, right or wrong.

Counted by django-ratelimit in the cache; while the cache is down, in this process with the same limits.
"""

import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field

from django.db import DatabaseError
from django.http import HttpRequest
from django_ratelimit.core import get_usage
from redis.exceptions import RedisError

from apps.accounts import address

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Door:
    name: str
    attempts: int
    seconds: int = 300


NETWORK = Door(name="accounts.sign_in.network", attempts=30)
ACCOUNT = Door(name="accounts.sign_in.account", attempts=10)


def knock(request: HttpRequest, account: str) -> int | None:
    """Counts an attempt to sign in: None to go on, or the seconds to wait.

    A network that has used up its attempts can't use up those of accounts. An account counts whether it exists or not.
    """
    for door, caller in ((NETWORK, address.network(request)), (ACCOUNT, account)):
        wait = _wait(request, door, caller)
        if wait is not None:
            return wait
    return None


def _wait(request: HttpRequest, door: Door, caller: str) -> int | None:
    try:
        usage = get_usage(
            request,
            group=door.name,
            key=lambda group, request: caller,
            rate=f"{door.attempts}/{door.seconds}s",
            increment=True,
        )
    except (RedisError, DatabaseError, OSError):
        logger.warning("The cache is down: sign-in attempts are counted in this process.", exc_info=True)
        return _local.wait(door, caller)
    if usage is None:  # RATELIMIT_ENABLE = False
        return None
    if not usage["limit"]:  # the cache answered, but kept nothing
        return _local.wait(door, caller)
    return max(usage["time_left"], 1) if usage["should_limit"] else None


@dataclass
class _Local:
    """Fixed windows in memory; a door's counts are dropped with its window."""

    counts: dict[tuple[str, int], Counter[str]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, door: Door, caller: str) -> int | None:
        now = int(time.time())
        window = (door.name, now // door.seconds)
        with self.lock:
            self.counts = {key: count for key, count in self.counts.items() if key[0] != door.name or key == window}
            count = self.counts.setdefault(window, Counter())
            count[caller] += 1
            return door.seconds - now % door.seconds if count[caller] > door.attempts else None


_local = _Local()
