"""The flood limits of the pages where somebody could guess or send mail (PS-7, RL-6): attempts, right or wrong.

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


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What one page allows to a network, where that matters, and to an account."""

    network: Door | None
    account: Door


NETWORK = Door(name="accounts.sign_in.network", attempts=30)
ACCOUNT = Door(name="accounts.sign_in.account", attempts=10)
SIGN_IN = Limit(network=NETWORK, account=ACCOUNT)
# Each attempt can be a mail to somebody who did not ask for it.
RESET = Limit(
    network=Door(name="accounts.reset.network", attempts=10),
    account=Door(name="accounts.reset.account", attempts=3, seconds=900),
)
EMAIL = Limit(
    network=Door(name="accounts.email.network", attempts=10),
    account=Door(name="accounts.email.account", attempts=3, seconds=900),
)
# The account is that of a running session: there is nothing to learn about others.
OLD_PASSWORD = Limit(network=None, account=Door(name="accounts.old_password.account", attempts=10))
REFERRAL = Limit(
    network=Door(name="accounts.referral.network", attempts=30),
    account=Door(name="accounts.referral.account", attempts=10),
)


def knock(request: HttpRequest, account: str, limit: Limit = SIGN_IN) -> int | None:
    """Counts an attempt: None to go on, or the seconds to wait.

    A network that has used up its attempts can't use up those of accounts. An account counts whether it exists or not.
    """
    if limit.network is not None:
        wait = _wait(request, limit.network, address.network(request))
        if wait is not None:
            return wait
    return _wait(request, limit.account, account)


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
        logger.warning("The cache is down: attempts are counted in this process.", exc_info=True)
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
