"""Work that goes on by itself: the same code in a thread of this process or in another worker, as `settings.API_SEND_TASK` says."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

from apps.api import approval_events, runs, sweeps

log = structlog.get_logger(__name__)

THREADS = 4


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


def connect() -> None:
    """Send what is approved from now on."""
    approval_events.approval_approved.connect(_on_approved, dispatch_uid="apps.api.tasks")


def send(name: str, *arguments: str) -> None:
    """Have a worker do it. A broker that is away is no error: the sweeps send again."""
    wanted: Callable[..., None] = _imported(getattr(settings, "API_SEND_TASK", "apps.api.tasks.in_thread"))
    wanted(name, *arguments)


def in_thread(name: str, *arguments: str) -> None:
    """In one of the few threads of this process."""
    _pool().submit(_do, name, *arguments)


def _do(name: str, *arguments: str) -> None:
    try:
        TASKS[name](*arguments)
    except Exception:
        log.exception("task_failed", task=name)
    finally:
        connections.close_all()


def _on_approved(*, approval: UUID, **_: Any) -> None:
    send("run_approval", str(approval))


_lock = threading.Lock()


@lru_cache(maxsize=1)
def _made() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, thread_name_prefix="tasks")


def _pool() -> ThreadPoolExecutor:
    with _lock:
        return _made()


@lru_cache(maxsize=4)
def _imported(name: str) -> Any:
    return import_string(name)
