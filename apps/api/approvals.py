"""Writes that wait for another person (SPEC 12): filed, moved from state to state, and what becomes of them told.

Every move is one conditional UPDATE that names the state, the attempt when it runs and the preview's version that was seen; who loses it
changed nothing. Reading computes the true state and writes nothing; `sweeps` makes it so.
"""

from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone

from apps.activity import actions
from apps.activity import log as activity
from apps.api import approval_events, approval_state, lifesigns
from apps.api.call import Call, Outcome, Refusal
from apps.api.credentials import VerifiedKey
from apps.api.models import Approval, Vote
from apps.api.problems import Problem
from apps.api.switches import Switches
from apps.api.tool import Tool

State = Approval.State

MAX_WAITING = 50
MAX_REOPENED = 3
_ROUNDS = 5

SYSTEM = activity.Actor(kind="system")


def file(
    call: Call, tool: Tool, *, shown: dict[str, Any], mark: str, arguments: dict[str, Any]
) -> tuple[Approval, bool]:
    """The approval that this operation waits for, in the transaction that is open, and whether it is a new one (AP-1).

    A repeat finds the one that waits: the constraint sees to it. Raises Problem when too many wait already.
    """
    key = _key(call)
    _lock_family(key.family)
    for _ in range(_ROUNDS):
        found = Approval.objects.filter(
            family=key.family, tool=tool.name, input_hash=call.input_hash, state__in=Approval.LIVE
        ).first()
        if found is not None and not _expire_if_due(found):
            return found, False
        _refuse_too_many(key.family)
        made = _made(call, tool, key, shown=shown, mark=mark, arguments=arguments)
        Approval.objects.bulk_create([made], ignore_conflicts=True)
        if Approval.objects.filter(pk=made.pk).exists():
            _tell(made.pk)
            return made, True
    raise Problem("conflict", "This operation is being asked for by another call.", reason="busy")


def _made(call: Call, tool: Tool, key: VerifiedKey, *, shown: Any, mark: str, arguments: Any) -> Approval:
    now = timezone.now()
    return Approval(
        family_id=key.family,
        key_id=key.uuid,
        tool=tool.name,
        input_hash=call.input_hash,
        arguments=arguments,
        preview=shown,
        fingerprint=mark,
        approvals_needed=key.approvers_needed,
        request_id=call.entrance.request_id,
        created_at=now,
        expires_at=now + timedelta(hours=_switches(call).api_approval_hours),
    )


def of_family(family: UUID, uuid: UUID) -> Approval | None:
    """The family's own approval; somebody else's and nobody's are both None."""
    return Approval.objects.select_related("key").filter(pk=uuid, family=family).first()


# --- Moves ------------------------------------------------------------------------------------------------------------


def vote(
    approval: Approval, *, approve: bool, voter: Any, voter_name: str, note: str, version: int, start_hours: int
) -> Approval.State:
    """Count the vote on the preview that the voter saw, then store it, in the transaction that is open (AP-2). The new state.

    Raises Problem when the approval waits no more, shows another preview now, or has this person's vote already.
    """
    now = timezone.now()
    waiting = Approval.objects.filter(pk=approval.pk, state=State.PENDING, preview_version=version, expires_at__gt=now)
    change = _one_more(now, start_hours) if approve else {"state": State.REJECTED, "ended_at": now}
    if not waiting.update(**change):
        raise _why_not(approval.pk, version=version, now=now)
    cast = Vote(
        approval=approval,
        voter=voter,
        voter_name=voter_name[:200],
        decision=Vote.Decision.APPROVE if approve else Vote.Decision.REJECT,
        note=note,
        preview_version=version,
        created_at=now,
    )
    Vote.objects.bulk_create([cast], ignore_conflicts=True)
    if not Vote.objects.filter(pk=cast.pk).exists():
        raise Problem("conflict", "You have voted on this already.", retry="never", reason="not_pending")
    _tell(approval.pk)
    state = State(Approval.objects.values_list("state", flat=True).get(pk=approval.pk))
    if state == State.APPROVED:
        transaction.on_commit(partial(approval_events.approved, approval.pk))
    return state


def _one_more(now: datetime, start_hours: int) -> dict[str, Any]:
    """The count raised and compared in one statement: of two last votes at the same instant the second one approves."""
    enough = Q(approvals__gte=F("approvals_needed") - 1)
    return {
        "approvals": F("approvals") + 1,
        "state": Case(When(enough, then=Value(State.APPROVED.value)), default=Value(State.PENDING.value)),
        "approved_at": Case(When(enough, then=Value(now)), default=None),
        "sent_at": Case(When(enough, then=Value(now)), default=None),
        "start_before": Case(When(enough, then=Value(now + timedelta(hours=start_hours))), default=None),
    }


def _why_not(uuid: UUID, *, version: int, now: datetime) -> Problem:
    """What a decider lost to."""
    approval = Approval.objects.get(pk=uuid)
    state, _ = approval_state.true_state(approval, now=now)
    if state == State.PENDING and approval.preview_version != version:
        detail = "The preview changed after you saw it. Look at the new one, then decide."
        return Problem("conflict", detail, retry="never", reason="stale_preview")
    return Problem("conflict", f"This approval is {state} already.", retry="never", reason="not_pending")


def cancel(approval: Approval, *, actor: activity.Actor, request_id: str = "", ip: str | None = None) -> None:
    """The requester takes it back, in the transaction that is open. Raises Problem when it runs or has ended."""
    moved = Approval.objects.filter(pk=approval.pk, state__in=[State.PENDING, State.APPROVED])
    if not moved.update(state=State.CANCELLED, ended_at=timezone.now()):
        raise Problem("conflict", "This approval waits no more.", retry="never", reason="not_pending")
    entry(actions.API_APPROVAL_CANCELLED, approval, actor=actor, request_id=request_id, ip=ip)
    _tell(approval.pk)


def start(approval: Approval) -> Approval | None:
    """Take the approved row to run it: the attempt that did, None for everybody else (AP-6). Commits at once."""
    now = timezone.now()
    with transaction.atomic(durable=True):
        mine = Approval.objects.filter(
            pk=approval.pk, state=State.APPROVED, attempt=approval.attempt, start_before__gt=now
        )
        if not mine.update(state=State.RUNNING, attempt=F("attempt") + 1, started_at=now):
            return None
        started = Approval.objects.select_related("key").get(pk=approval.pk)
        lifesigns.begin(approval_state.work_of(started))
        _tell(approval.pk)
    return started


def must_be_current(approval: Approval) -> None:
    """The first question of the run's transaction: does this attempt still run? Raises Overtaken."""
    if not this_attempt(approval).exists():
        raise Overtaken


class Overtaken(Problem):
    """A sweep took the attempt for lost: whatever it still wants to write is refused."""

    def __init__(self) -> None:
        super().__init__("conflict", "This run was given up as interrupted.", retry="never", reason="approval_failed")


def finish(approval: Approval, outcome: Outcome) -> None:
    """In the run's transaction, with the encoded outcome. Raises Overtaken."""
    state, code = (State.FAILED, outcome.problem.code) if isinstance(outcome, Refusal) else (State.DONE, "")
    status = outcome.status if isinstance(outcome, Refusal) else 200
    moved = this_attempt(approval).update(
        state=state,
        code=code,
        status=status,
        body=outcome.body,
        partial=lifesigns.reported(approval_state.work_of(approval)),
        ended_at=timezone.now(),
    )
    if not moved:
        raise Overtaken
    _tell(approval.pk)


def reopen(approval: Approval, *, why: str, shown: dict[str, Any] | None = None, mark: str = "") -> bool:
    """Back to the approvers before the handler ran: other values, or votes that count no more. False when it was overtaken.

    After three times it fails instead. The votes are cleared and stay in the history.
    """
    if approval.reopened >= MAX_REOPENED:
        return fail(approval, "changed")
    preview = {} if shown is None else {"preview": shown, "fingerprint": mark}
    with transaction.atomic(durable=True):
        moved = this_attempt(approval).update(
            state=State.PENDING,
            approvals=0,
            approved_at=None,
            start_before=None,
            sent_at=None,
            started_at=None,
            reopened=F("reopened") + 1,
            preview_version=F("preview_version") + 1,
            **preview,
        )
        if moved:
            Vote.objects.filter(approval=approval, cleared_at=None).update(cleared_at=timezone.now())
            entry(actions.API_APPROVAL_REOPENED, approval, actor=SYSTEM, why=why)
            _tell(approval.pk)
    return bool(moved)


def fail(approval: Approval, code: str, *, outcome: Refusal | None = None) -> bool:
    """End an attempt that can't be finished. False when somebody else ended it."""
    with transaction.atomic(durable=True):
        ended = this_attempt(approval).update(
            state=State.FAILED,
            code=code,
            status=None if outcome is None else outcome.status,
            body=None if outcome is None else outcome.body,
            partial=lifesigns.reported(approval_state.work_of(approval)),
            ended_at=timezone.now(),
        )
        if ended:
            entry(actions.API_APPROVAL_FAILED, approval, actor=SYSTEM, code=code)
            _tell(approval.pk)
    return bool(ended)


def this_attempt(approval: Approval) -> Any:
    """The approval while this attempt of it runs."""
    return Approval.objects.filter(pk=approval.pk, state=State.RUNNING, attempt=approval.attempt)


def _expire_if_due(approval: Approval) -> bool:
    state, _ = approval_state.true_state(approval, now=timezone.now())
    return state not in Approval.LIVE and end(approval)


def end(approval: Approval) -> bool:
    """Write what `true_state` computes, in the transaction that is open. False when there is nothing to write, or it moved meanwhile."""
    now = timezone.now()
    state, code = approval_state.true_state(approval, now=now)
    if state in Approval.LIVE or approval.state not in Approval.LIVE:
        return False
    seen = Approval.objects.filter(
        pk=approval.pk, state=approval.state, attempt=approval.attempt, preview_version=approval.preview_version
    )
    if not seen.update(state=state, code=code, partial=approval_state.partial_of(approval), ended_at=now):
        return False
    action = actions.API_APPROVAL_EXPIRED if state == State.EXPIRED else actions.API_APPROVAL_FAILED
    entry(action, approval, actor=SYSTEM, code=code)
    _tell(approval.pk)
    return True


def entry(
    action: str,
    approval: Approval,
    *,
    actor: activity.Actor,
    request_id: str = "",
    ip: str | None = None,
    **metadata: Any,
) -> None:
    """One entry about the approval: never its input, its preview or a note."""
    activity.write(
        action=action,
        module="api",
        mode={"user": activity.Mode.MANUAL, "system": activity.Mode.CRON}.get(actor.kind, activity.Mode.AUTO),
        actor=actor,
        resource_type="approval",
        resource_uuid=str(approval.pk),
        target=approval.tool,
        request_id=request_id or approval.request_id,
        ip=ip,
        metadata={"key": approval.key.public_id, **metadata},
    )


def _tell(uuid: UUID) -> None:
    """Once it is committed, whoever watches the approval fetches it again."""
    transaction.on_commit(partial(approval_events.changed, uuid))


def _lock_family(family: UUID) -> None:
    """One at a time for one family, so that what waits is counted exactly."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"approvals {family}"])


def _refuse_too_many(family: UUID) -> None:
    waiting = Approval.objects.filter(family=family, state=State.PENDING, expires_at__gt=timezone.now())
    if waiting[:MAX_WAITING].count() >= MAX_WAITING:
        detail = "Too many writes of this key wait for an approval."
        raise Problem("conflict", detail, retry="later", reason="too_many_waiting")


def _key(call: Call) -> VerifiedKey:
    assert call.actor is not None and call.actor.key is not None  # noqa: PT018, S101 - only keys ask for approvals
    return call.actor.key


def _switches(call: Call) -> Switches:
    assert call.switches is not None  # noqa: S101 - the first step read them
    return call.switches
