"""What an approval is at this moment (AP-5): its true state, how far it came. Reading computes, and writes nothing."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from apps.api import lifesigns
from apps.api.lifesigns import Work
from apps.api.models import Approval

State = Approval.State

IDLE_SECONDS = 15 * 60


def true_state(approval: Approval, *, now: datetime) -> tuple[Approval.State, str]:
    """State and code as they are at this moment, whatever no sweep has written yet."""
    state = State(approval.state)
    if state == State.PENDING and approval.expires_at <= now:
        return State.EXPIRED, ""
    if state == State.APPROVED and approval.start_before is not None and approval.start_before <= now:
        return State.FAILED, "not_started"
    if state == State.RUNNING and is_lost(approval):
        return State.FAILED, "interrupted"
    return state, approval.code


def work_of(approval: Approval) -> Work:
    return Work(kind="approval", uuid=approval.pk, attempt=approval.attempt)


def is_lost(approval: Approval) -> bool:
    """A running one whose worker gives no sign, or that comes no further (AP-5)."""
    sign = lifesigns.of(work_of(approval))
    if sign is None:
        return True
    return sign.silent_seconds > lifesigns.lease_seconds() or sign.idle_seconds > IDLE_SECONDS


def partial_of(approval: Approval) -> Any:
    """What the handler reported last: while it runs, from its sign of life."""
    if approval.state != State.RUNNING:
        return approval.partial
    sign = lifesigns.of(work_of(approval))
    return None if sign is None else sign.partial


def progress_of(reported: Any) -> float | None:
    """How far that is, 0 to 1: a number, or an object with `done` and `total`; None for anything else."""
    if isinstance(reported, Mapping):
        done, total = _number(reported.get("done")), _number(reported.get("total"))
        share = None if done is None or not total or total < 0 else done / total
    else:
        share = _number(reported)
    return None if share is None else min(1.0, max(0.0, share))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
