"""What goes on by itself: lost external calls become unknown, approvals end or are sent again, what is past its time is deleted.

At start-up, by the one process's timer or by beat, and by `manage.py sweep`.
"""

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, connections, transaction
from django.db.models import Q
from django.utils import timezone

from apps.api import approval_events, approvals, confirmations, credentials, lifesigns, records, switches
from apps.api.models import Approval, Lifesign

log = structlog.get_logger(__name__)

EVERY = timedelta(hours=1)
SENT_AGAIN_AFTER = timedelta(seconds=60)


@dataclass(frozen=True, kw_only=True)
class Swept:
    """How many external writes were lost with their worker, and how many rows of each kind were past their time."""

    lost_calls: int
    idempotency_records: int
    confirmations: int
    lifesigns: int
    approval_inputs: int


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
        approval_inputs=clear_inputs(keep_days=kept.approval_input_retention),
    )


@dataclass(frozen=True, kw_only=True)
class SweptApprovals:
    """How many approvals ended because their time was over or their worker is gone, and how many were sent to a worker again."""

    ended: int
    sent: int


def sweep_approvals(*, is_server: bool = False) -> SweptApprovals:
    """Write what reading computes, and send again what was approved and nobody started (AP-5).

    On SQLite only the server's own process knows who runs, and only it has workers: any other one only ends what is past its time.
    """
    can_tell = is_server or connection.vendor != "sqlite"
    live = Approval.objects.select_related("key").filter(state__in=Approval.LIVE).order_by("created_at", "pk")
    running = Q() if can_tell else ~Q(state=Approval.State.RUNNING)
    ended = sum(_ended(approval) for approval in live.filter(running).iterator(chunk_size=200))
    sent = _send_again() if can_tell else 0
    _note()
    return SweptApprovals(ended=ended, sent=sent)


def _ended(approval: Approval) -> bool:
    with transaction.atomic():
        return _is_free(approval.pk) and approvals.end(approval)


def _is_free(uuid: UUID) -> bool:
    """Whether nobody moves it right now. A process that was paused in the middle of a move must not hold up the other approvals."""
    rows = Approval.objects.select_for_update(skip_locked=True, no_key=True).filter(pk=uuid).order_by("pk")
    return bool(rows.values_list("pk"))


def _send_again() -> int:
    """One conditional update for each, so that two sweeps send it once."""
    now = timezone.now()
    waiting = Q(sent_at=None) | Q(sent_at__lt=now - SENT_AGAIN_AFTER)
    found = Approval.objects.filter(waiting, state=Approval.State.APPROVED, start_before__gt=now)
    sent = 0
    for uuid in found.order_by("approved_at", "pk").values_list("pk", flat=True)[:1_000]:
        with transaction.atomic():
            again = Approval.objects.filter(waiting, pk=uuid, state=Approval.State.APPROVED)
            is_mine = _is_free(uuid) and again.update(sent_at=now)
        if is_mine:
            approval_events.approved(uuid)
            sent += 1
    return sent


def clear_inputs(*, keep_days: int) -> int:
    """Take input and preview off approvals that ended so long ago (AP-7); the outcome stays. How many."""
    limit = timezone.now() - timedelta(days=keep_days)
    over = Approval.objects.filter(ended_at__lt=limit).exclude(arguments=None, preview=None)
    return over.update(arguments=None, preview=None, partial=None)


def approvals_every() -> timedelta:
    """How often beat or the one process's timer sweeps the approvals."""
    return timedelta(seconds=getattr(settings, "API_APPROVALS_SWEEP_SECONDS", 15))


_more: list[tuple[Callable[..., Any], Callable[[], timedelta]]] = []


def register(function: Callable[..., Any], *, every: Callable[[], timedelta]) -> None:
    """A sweep of another app, from its `ready` on: called with `is_server=True`, and answers a dataclass of counts."""
    _more.append((function, every))


def sweep_others(*, is_server: bool = False) -> dict[str, int]:
    """One round of what other apps registered: the counts of all."""
    return {name: count for function, _ in _more for name, count in asdict(function(is_server=is_server)).items()}


def start(*, every: timedelta = EVERY) -> threading.Event:
    """Sweep now and at their intervals, in threads that end with the process, or once the event is set."""
    ended = threading.Event()
    others = [(function, interval()) for function, interval in _more]
    for function, interval in ((sweep, every), (sweep_approvals, approvals_every()), *others):
        arguments = [function, ended, interval]
        threading.Thread(target=_sweep_until, args=arguments, name=function.__name__, daemon=True).start()
    return ended


def _sweep_until(function: Callable[..., Any], ended: threading.Event, every: timedelta) -> None:
    while not ended.is_set():
        _sweep_quietly(function)
        ended.wait(every.total_seconds())


def _sweep_quietly(function: Callable[..., Any]) -> None:
    """One round. Whatever goes wrong with it, the server stays and the next round tries again."""
    try:
        found = asdict(function(is_server=True))
        if any(found.values()):
            log.info("swept", **found)
    except Exception:
        log.exception("not_swept")
    finally:
        connections.close_all()


def last() -> timedelta | None:
    """How long ago the approvals were swept last, by whichever process; None when they never were, or not for a day."""
    now = Lifesign.objects.filter(kind=_KIND, uuid=_UUID).values_list("seen_at", flat=True).first()
    return None if now is None else timezone.now() - now


def _note() -> None:
    Lifesign.objects.update_or_create(kind=_KIND, uuid=_UUID, defaults={"attempt": 0, "seen_at": timezone.now()})


_KIND, _UUID = "sweep", UUID(int=0)
