"""Which store this process uses (RL-4): the configured Redis, memory in the one-process default, else the database."""

import threading

from django.conf import settings

from apps.api.ratelimit.bucket import Store
from apps.api.ratelimit.database import DatabaseStore
from apps.api.ratelimit.guard import GuardedStore
from apps.api.ratelimit.memory import MemoryStore
from apps.api.ratelimit.redis import RedisStore

_lock = threading.Lock()
_open: dict[tuple[str, bool], Store] = {}


def current() -> Store:
    """The store that the settings name, made once."""
    choice = (getattr(settings, "REDIS_URL", ""), getattr(settings, "EMBEDDED", False))
    store = _open.get(choice)
    if store is None:
        # Two threads must never count in two memories.
        with _lock:
            store = _open.get(choice) or _open.setdefault(choice, _make(*choice))
    return store


def _make(redis_url: str, embedded: bool) -> Store:  # noqa: FBT001 - the key of the dictionary above
    if redis_url:
        return GuardedStore("The limiter's Redis", RedisStore(redis_url))
    if embedded:
        return MemoryStore()
    return GuardedStore("The limiter's database", DatabaseStore())
