"""Work that goes on by itself: the same code in a thread of this process or in another worker, as `settings.API_SEND_TASK` says."""

import os
import threading
from collections.abc import Callable
from functools import lru_cache
from queue import SimpleQueue
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from apps.api import approval_events, runs, sweeps

log = structlog.get_logger(__name__)

# Tasks of one pool wait for each other alone. A pool is also the queue of a broker.
DEFAULT_POOL = "tasks"
THREADS = {DEFAULT_POOL: 4}


def run_approval(uuid: str) -> None:
    """The task: only the uuid travels, all state is in the database (AP-2)."""
    runs.run(UUID(uuid))


def sweep_approvals() -> None:
    """The task of the timer and of beat."""
    sweeps.sweep_approvals(is_server=True)


def sweep() -> None:
    """The hourly one."""
    sweeps.sweep(is_server=True)


TASKS: dict[str, Callable[..., None]] = {
    "run_approval": run_approval,
    "sweep_approvals": sweep_approvals,
    "sweep": sweep,
}


POOLS: dict[str, str] = {}


def register(name: str, function: Callable[..., None], *, pool: str = DEFAULT_POOL, threads: int | None = None) -> None:
    """A task of another app, from its `ready` on. `threads`: how many of the pool's tasks one process runs at a time."""
    TASKS[name] = function
    POOLS[name] = pool
    if threads is not None:
        THREADS[pool] = threads


def connect() -> None:
    """Send what is approved from now on."""
    approval_events.approval_approved.connect(_on_approved, dispatch_uid="apps.api.tasks")


def send(name: str, *arguments: str) -> None:
    """Have a worker do it. A broker that is away is no error: the sweeps send again."""
    wanted: Callable[..., None] = _imported(getattr(settings, "API_SEND_TASK", "apps.api.tasks.in_thread"))
    wanted(name, *arguments)


def in_thread(name: str, *arguments: str) -> None:
    """In one of the few threads of this process, of the task's own pool."""
    _pools.of(POOLS.get(name, DEFAULT_POOL)).put((name, arguments))


def _do(name: str, *arguments: str) -> None:
    try:
        TASKS[name](*arguments)
    except Exception:
        log.exception("task_failed", task=name)
    finally:
        connections.close_all()


def _on_approved(*, approval: UUID, **_: Any) -> None:
    send("run_approval", str(approval))


_Job = tuple[str, tuple[str, ...]]


class _Pools:
    """Threads that are started with the first task of their pool and end with the process: nobody waits for one that hangs."""

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """A forked worker has the parent's variables and none of its threads, one of which may have held the lock."""
        self._lock, self._queues = threading.Lock(), dict[str, SimpleQueue[_Job]]()

    def of(self, pool: str) -> "SimpleQueue[_Job]":
        with self._lock:
            if pool not in self._queues:
                self._queues[pool] = SimpleQueue()
                for number in range(THREADS[pool]):
                    arguments = [self._queues[pool]]
                    name = f"{pool}-{number}"
                    threading.Thread(target=_work, args=arguments, name=name, daemon=True).start()
            return self._queues[pool]


def _work(jobs: "SimpleQueue[_Job]") -> None:
    while True:
        name, arguments = jobs.get()
        _do(name, *arguments)


_pools = _Pools()
os.register_at_fork(after_in_child=_pools.start_afresh)


@lru_cache(maxsize=4)
def _imported(name: str) -> Any:
    return import_string(name)
