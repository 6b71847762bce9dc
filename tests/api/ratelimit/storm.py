"""Many processes with many threads that charge one bucket at the same time.

Run as a module it is one of the processes: it says "ready", and for each number that it reads it makes that many calls,
spread over threads that a barrier lets go at once, and answers how many were admitted.
"""

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import redis
from django.db import connection

from apps.api import ratelimit
from apps.api.ratelimit import Bucket
from apps.api.ratelimit.bucket import Store
from apps.api.ratelimit.database import DatabaseStore
from apps.api.ratelimit.redis import RedisStore

BUDGET = 100
PROCESSES = 4
THREADS = 10


class Storm:
    """Processes that are ready to charge."""

    def __init__(self, processes: list[subprocess.Popen[str]]) -> None:
        self._processes = processes

    def begin(self, calls: int) -> None:
        """Let the calls go, so many in all."""
        for process in self._processes:
            assert process.stdin is not None
            process.stdin.write(f"{calls // len(self._processes)}\n")
            process.stdin.flush()

    def admitted(self) -> int:
        """Of the calls that were let go."""
        return sum(int(_line(process)) for process in self._processes)

    def admitted_of(self, calls: int) -> int:
        self.begin(calls)
        return self.admitted()


@contextmanager
def storm(limiter: str, environment: dict[str, str], *, processes: int = PROCESSES) -> Iterator[Storm]:
    """`limiter` names a function of this module that makes a call: True when it was admitted."""
    command = [sys.executable, "-m", "tests.api.ratelimit.storm", limiter]
    started = [
        subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    try:
        for process in started:
            assert _line(process) == "ready"
        yield Storm(started)
    finally:
        for process in started:
            process.communicate()


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def configured() -> Callable[[], bool]:
    """The limiter as the environment configures it."""
    bucket = Bucket(policy="key", name="storm", budget=BUDGET)
    return lambda: ratelimit.charge([(bucket, 1)]).admitted


def two_buckets() -> Callable[[], bool]:
    """Two buckets in one step, in either order; the one with the smaller budget decides."""
    small = Bucket(policy="key", name="storm:small", budget=BUDGET)
    large = Bucket(policy="person", name="storm:large", budget=BUDGET + 50)

    def call() -> bool:
        step = [(small, 1), (large, 1)]
        return ratelimit.charge(step if threading.get_native_id() % 2 else step[::-1]).admitted

    return call


def redis_on_a_set_clock() -> Callable[[], bool]:
    return _taking(RedisStore(os.environ["REDIS_URL"], clock="redis.call('GET', 'test:clock')"))


def database_on_a_set_clock() -> Callable[[], bool]:
    return _taking(DatabaseStore(clock="(SELECT last_value FROM test_clock)"))


def _taking(store: Store) -> Callable[[], bool]:
    bucket = Bucket(policy="key", name="storm", budget=BUDGET)
    return lambda: not store.take([(bucket, 1)])[0].wait


def racy_redis() -> Callable[[], bool]:
    """Planted: the check and the charge are two steps."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])

    def call() -> bool:
        used = int(client.get("storm:racy") or 0)
        if used >= BUDGET:
            return False
        client.set("storm:racy", used + 1)
        return True

    return call


def racy_database() -> Callable[[], bool]:
    """Planted: the check and the charge are two statements. The count stands in dead_minute."""

    def call() -> bool:
        with connection.cursor() as cursor:
            cursor.execute("SELECT dead_minute FROM api_bucket WHERE name = 'storm:racy'")
            (used,) = cursor.fetchone()
            if used >= BUDGET:
                return False
            cursor.execute("UPDATE api_bucket SET dead_minute = %s WHERE name = 'storm:racy'", [used + 1])
        return True

    return call


def fixed_window_redis() -> Callable[[], bool]:
    """Planted: exact in each minute of the clock, and twice the budget across its edge."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    return lambda: int(client.incr(f"storm:minute:{int(client.get('test:clock') or 0) // 60}")) <= BUDGET


def _serve(call: Callable[[], bool]) -> None:
    _say("ready")
    for line in sys.stdin:
        _say(_admitted(call, int(line)))


def _say(answer: object) -> None:
    sys.stdout.write(f"{answer}\n")
    sys.stdout.flush()


def _admitted(call: Callable[[], bool], calls: int) -> int:
    admitted: list[bool] = []
    barrier = threading.Barrier(THREADS)

    def work(share: int) -> None:
        barrier.wait()
        admitted.extend(call() for _ in range(share))

    threads = [threading.Thread(target=work, args=(len(range(n, calls, THREADS)),)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(admitted)


if __name__ == "__main__":
    _serve(globals()[sys.argv[1]]())
