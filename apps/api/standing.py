"""What a live session may do, asked anew for its sockets as long as one of them is open, and once for all of them (CH-5)."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from django.db import close_old_connections

from apps.api import credentials
from apps.api.people import Session

# Who the session belongs to is asked at least this often, and while events flow at most once a second.
CHECK_SECONDS = 30.0
FRESH_SECONDS = 1.0

OVER, FORBIDDEN, NOT_FOUND, TOO_MANY, BROKEN, AGAIN = 4401, 4403, 4404, 4429, 1011, 1012

T = TypeVar("T")

# They keep their connections as a web worker's do: a new one for each question would cost more than the question.
threads = ThreadPoolExecutor(4, thread_name_prefix="sockets")


class Closed(Exception):
    """The socket may not stay open."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Database work, in one of the few threads of the sockets."""

    def work() -> T:
        close_old_connections()
        try:
            return function(*arguments)
        finally:
            close_old_connections()

    return await asyncio.get_running_loop().run_in_executor(threads, work)


class Standing:
    """`look` says in a thread what the reference stands for, or raises Closed."""

    def __init__(self, ref: object, look: Callable[[object], Session]) -> None:
        self.ref, self._look, self._lock = ref, look, asyncio.Lock()
        self._found: Session | int = OVER
        self._asked_at = float("-inf")
        self._news = 0

    async def now(self) -> Session:
        """As of this moment, or of a second ago. Raises Closed."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= FRESH_SECONDS:
                await self._ask()
            found = self._found
        if isinstance(found, int):
            raise Closed(found)
        return found

    def forget(self) -> None:
        """Something changed: the next question is asked anew, also if one is under way."""
        self._news += 1
        self._asked_at = float("-inf")

    async def _ask(self) -> None:
        """An error leaves what was known as old as it was. News that come meanwhile make it ask again."""
        news = None
        while news != self._news:
            news, asked_at = self._news, time.monotonic()
            self._found = await in_thread(self._answer)
        self._asked_at = asked_at

    def _answer(self) -> Session | int:
        try:
            return self._look(self.ref)
        except Closed as closed:
            return closed.code


# By loop as well: a lock belongs to one.
_standings: WeakValueDictionary[Any, Any] = WeakValueDictionary()

S = TypeVar("S", bound=Standing)


def of(ref: object, kind: Callable[[object], S]) -> S:
    """The one that all sockets of this kind share, on this loop."""
    name = (asyncio.get_running_loop(), kind, ref)
    found = _standings.get(name)
    if found is None:
        found = _standings[name] = kind(ref)
    return cast(S, found)


class _Settings:
    """The rows of the operator's settings as of a second ago, read once for all sockets."""

    def __init__(self) -> None:
        self._lock, self._read_at, self._found = threading.Lock(), float("-inf"), ""

    def now(self) -> str:
        with self._lock:
            if time.monotonic() - self._read_at >= FRESH_SECONDS:
                read_at = time.monotonic()
                self._found = credentials.read(None).settings
                self._read_at = read_at
            return self._found


_settings = _Settings()


def settings() -> str:
    """What `switches.parse` reads. From a thread."""
    return _settings.now()
