"""The Celery application where a broker is configured: the task code of `apps.api.tasks`, and beat's schedule.

    celery -A config.celery worker
    celery -A config.celery beat

A worker takes from all queues. Turns wait for providers and have a queue of their own, so that workers can be started for them alone
(`-Q turns`) and for the rest (`-Q tasks`).

Only uuids travel. A task may be delivered late, twice or never: the state is in the database, and the sweeps send again what was lost.
"""

import structlog
from celery import Celery
from celery.schedules import schedule
from celery.signals import worker_ready
from django.conf import settings
from kombu.entity import Queue
from kombu.exceptions import OperationalError

from config import startup

startup.prepare()

from apps.agent import purge  # noqa: E402 - Django must be set up
from apps.agent import sweeps as agent_sweeps  # noqa: E402 - Django must be set up
from apps.agent import tasks as agent_tasks  # noqa: E402 - Django must be set up
from apps.api import sweeps, tasks  # noqa: E402 - Django must be set up

log = structlog.get_logger(__name__)

PREFIX = "tollhouse."

app = Celery("tollhouse", broker=settings.CELERY_BROKER_URL or "memory://")
app.conf.update(
    accept_content=["json"],
    task_ignore_result=True,
    # Taken off the queue before it runs: a broker that restarts meanwhile finds nothing of it to hand out again (and no worker ends over
    # that). What a dying worker had not started is sent again by the sweeps, and what it had started is interrupted (AP-6).
    task_acks_late=False,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    # A worker waits for a broker that is away, however long.
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    # Whoever decides does not: neither for one that can't be reached nor for one that takes the connection and says nothing.
    broker_connection_timeout=1,
    broker_transport_options={"socket_connect_timeout": 1, "socket_timeout": 1, "max_retries": 0},
    task_publish_retry=False,
    beat_schedule={
        "sweep_approvals": {
            "task": f"{PREFIX}sweep_approvals",
            "schedule": schedule(sweeps.approvals_every()),
            "options": {"expires": sweeps.approvals_every().total_seconds()},
        },
        "sweep": {
            "task": f"{PREFIX}sweep",
            "schedule": schedule(sweeps.EVERY),
            "options": {"expires": sweeps.EVERY.total_seconds()},
        },
        agent_tasks.SWEEP: {
            "task": f"{PREFIX}{agent_tasks.SWEEP}",
            "schedule": schedule(agent_sweeps.every()),
            "options": {"expires": agent_sweeps.every().total_seconds()},
        },
        agent_tasks.PURGE: {
            "task": f"{PREFIX}{agent_tasks.PURGE}",
            "schedule": schedule(purge.every()),
            "options": {"expires": purge.every().total_seconds()},
        },
    },
    task_default_queue=tasks.DEFAULT_POOL,
    task_queues=[Queue(name) for name in tasks.THREADS],  # type: ignore[no-untyped-call]  # the library has no types
    task_routes={f"{PREFIX}{name}": {"queue": pool} for name, pool in tasks.POOLS.items()},
)
for _name, _function in tasks.TASKS.items():
    app.task(name=f"{PREFIX}{_name}")(_function)


def _sweep_at_start(**_: object) -> None:
    """Beat's first round of a new schedule comes after its interval, and what a stop left behind should not wait for it."""
    for name in ("sweep_approvals", "sweep", agent_tasks.SWEEP, agent_tasks.PURGE):
        send(name)


worker_ready.connect(_sweep_at_start)


def send(name: str, *arguments: str) -> None:
    """`settings.API_SEND_TASK` of an installation with a broker. One that is away loses nothing: the sweeps send again."""
    try:
        app.send_task(f"{PREFIX}{name}", args=arguments)
    except (OperationalError, OSError):
        log.exception("task_not_sent", task=name)
