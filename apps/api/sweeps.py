"""Lost external calls become unknown, and what is past its time is deleted: at start-up, hourly, and by `manage.py sweep`."""

import threading
from dataclasses import asdict, dataclass
from datetime import timedelta

import structlog
from django.db import connection, connections

from apps.api import confirmations, credentials, lifesigns, records, switches

log = structlog.get_logger(__name__)

EVERY = timedelta(hours=1)


@dataclass(frozen=True, kw_only=True)
class Swept:
    """How many external writes were lost with their worker, and how many rows of each kind were past their time."""

    lost_calls: int
    idempotency_records: int
    confirmations: int
    lifesigns: int


def sweep(*, is_server: bool = False) -> Swept:
    """Mark what was lost (ID-3), and delete what is past the time that the settings keep it for.

    On SQLite only the server's own process knows who is at work, so any other one takes nothing for lost or dead.
    """
    can_tell = is_server or connection.vendor != "sqlite"
    kept = switches.parse(credentials.read(None).settings)
    hours = kept.idempotency_retention
    dead = records.forget_dead(keep_hours=hours) if can_tell else 0
    return Swept(
        lost_calls=records.mark_lost() if can_tell else 0,
        idempotency_records=dead + records.prune(keep_hours=hours),
        confirmations=confirmations.prune(keep_days=kept.confirmation_retention),
        lifesigns=lifesigns.prune(),
    )


def start(*, every: timedelta = EVERY) -> threading.Event:
    """Sweep now and at this interval, in a thread that ends with the process, or once the event is set."""
    ended = threading.Event()
    threading.Thread(target=_sweep_until, args=[ended, every], name="sweeps", daemon=True).start()
    return ended


def _sweep_until(ended: threading.Event, every: timedelta) -> None:
    while not ended.is_set():
        _sweep_quietly()
        ended.wait(every.total_seconds())


def _sweep_quietly() -> None:
    """One round. Whatever goes wrong with it, the server stays and the next round tries again."""
    try:
        log.info("swept", **asdict(sweep(is_server=True)))
    except Exception:
        log.exception("not_swept")
    finally:
        connections.close_all()
