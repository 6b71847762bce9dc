"""The tasks of the assistant, by the names under which `apps.api.tasks` sends them: the same code in a thread or in Celery's worker."""

from uuid import UUID

from apps.agent import follow_ups, loop, purge, sweeps
from apps.api import sweeps as rounds
from apps.api import tasks

SWEEP, PURGE = "sweep_turns", "purge_chats"

# Turns wait for providers: they have threads of their own, so that they never use up those of the approvals (TU-5).
POOL, THREADS = "turns", 8


def run_turn(uuid: str) -> None:
    """Only the uuid travels."""
    loop.run(UUID(uuid))


def sweep_turns() -> None:
    """The task of the timer and of beat."""
    sweeps.sweep_turns(is_server=True)


def purge_chats() -> None:
    """As above."""
    purge.purge_deleted(is_server=True)


def connect() -> None:
    """Known to every way of running tasks from now on."""
    tasks.register(follow_ups.RUN, run_turn, pool=POOL, threads=THREADS)
    tasks.register(SWEEP, sweep_turns)
    tasks.register(PURGE, purge_chats)
    rounds.register(sweeps.sweep_turns, every=sweeps.every)
    rounds.register(purge.purge_deleted, every=purge.every)
