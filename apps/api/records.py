"""What becomes of idempotency records without their callers: settled by an operator, lost with their worker, past their time."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.activity import actions
from apps.activity import log as activity
from apps.api import idempotency, lifesigns
from apps.api.lifesigns import Work
from apps.api.models import IdempotencyRecord

State = IdempotencyRecord.State


@transaction.atomic
def settle(
    record: IdempotencyRecord, *, happened: bool, actor: activity.Actor, request_id: str = "", ip: str | None = None
) -> bool:
    """The operator's word on an unknown outcome. False when it is not unknown any more: one word, one entry.

    Happened: repeats answer that it was settled as done. Did not happen: the record is gone, and a repeat runs.
    """
    unknown = IdempotencyRecord.objects.filter(pk=record.pk, state=State.UNKNOWN, attempt=record.attempt)
    if happened:
        changed = unknown.update(state=State.DONE, status=200, body=_SETTLED, finished_at=timezone.now())
    else:
        changed, _ = unknown.delete()
    if changed:
        activity.write(
            action=actions.API_IDEMPOTENCY_SETTLED,
            module="api",
            mode=activity.Mode.MANUAL,
            actor=actor,
            resource_type="idempotency_record",
            resource_uuid=str(record.pk),
            target=record.tool,
            request_id=request_id,
            ip=ip,
            metadata={"happened": happened, "caller": record.caller, "first_request_id": record.request_id},
        )
    return bool(changed)


_SETTLED = b'{"status":"settled_as_done"}'


def mark_lost() -> int:
    """Show the operator every external write whose worker died: a repeat would find it unknown, but not each has one. How many."""
    lost = [
        record
        for record in IdempotencyRecord.objects.filter(state=State.RUNNING, external=True)
        if not lifesigns.is_alive(Work(kind="call", uuid=record.uuid, attempt=record.attempt))
    ]
    return sum(idempotency.this_attempt(record.uuid, record.attempt).update(state=State.UNKNOWN) for record in lost)


def forget_dead(*, keep_hours: int) -> int:
    """Delete records of database tools whose worker died and that nobody repeated in all that time. How many."""
    limit = timezone.now() - timedelta(hours=keep_hours)
    old = IdempotencyRecord.objects.filter(state=State.RUNNING, external=False, created_at__lt=limit)
    dead = [record for record in old if idempotency.is_dead(record)]
    return sum(idempotency.this_attempt(record.uuid, record.attempt).delete()[0] for record in dead)


def prune(*, keep_hours: int, batch: int = 1_000) -> int:
    """Delete ended and waiting records past their time, in batches; how many there were. Unknown ones stay until they are settled."""
    limit = timezone.now() - timedelta(hours=keep_hours)
    waited = Q(approval=None, created_at__lt=limit) | Q(approval__ended_at__lt=limit)
    over = Q(state=State.DONE, finished_at__lt=limit) | Q(waited, state=State.WAITING)
    deleted = 0
    while found := list(IdempotencyRecord.objects.filter(over).values_list("pk", flat=True)[:batch]):
        # By the state alone: it may have been claimed again since.
        still = IdempotencyRecord.objects.filter(pk__in=found, state__in=[State.DONE, State.WAITING])
        deleted += still.delete()[0]
    return deleted
