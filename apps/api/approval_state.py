"""What an approval is at this moment (AP-5): its true state, how far it came. Reading computes, and writes nothing."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from apps.api import lifesigns
from apps.api.lifesigns import Sign, Work
from apps.api.models import Approval

State = Approval.State

IDLE_SECONDS = 15 * 60


Signs = Mapping[Work, Sign]


def true_state(approval: Approval, *, now: datetime, signs: Signs | None = None) -> tuple[Approval.State, str]:
    """State and code as they are at this moment, whatever no sweep has written yet. `signs`: those of `signs_of`, for a list."""
    state = State(approval.state)
    if state == State.PENDING and approval.expires_at <= now:
        return State.EXPIRED, ""
    if state == State.APPROVED and approval.start_before is not None and approval.start_before <= now:
        return State.FAILED, "not_started"
    if state == State.RUNNING and is_lost(approval, signs):
        return State.FAILED, "interrupted"
    return state, approval.code


def work_of(approval: Approval) -> Work:
    return Work(kind="approval", uuid=approval.pk, attempt=approval.attempt)


def signs_of(approvals: Iterable[Approval]) -> Signs:
    """The signs of those of them that run, with one query at most."""
    return lifesigns.of_all([work_of(approval) for approval in approvals if approval.state == State.RUNNING])


def is_lost(approval: Approval, signs: Signs | None = None) -> bool:
    """A running one whose worker gives no sign, or that comes no further (AP-5)."""
    sign = _sign(approval, signs)
    if sign is None:
        return True
    return sign.silent_seconds > lifesigns.lease_seconds() or sign.idle_seconds > IDLE_SECONDS


def partial_of(approval: Approval, signs: Signs | None = None) -> Any:
    """What the handler reported last: while it runs, from its sign of life."""
    if approval.state != State.RUNNING:
        return approval.partial
    sign = _sign(approval, signs)
    return None if sign is None else sign.partial


def _sign(approval: Approval, signs: Signs | None) -> Sign | None:
    work = work_of(approval)
    return lifesigns.of(work) if signs is None else signs.get(work)


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
