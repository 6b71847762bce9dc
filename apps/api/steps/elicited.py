"""A held call whose transport asked for the second word itself (MC-4): what is no yes."""

from django.db import transaction
from django.utils import timezone

from apps.activity import actions
from apps.activity import log as activity
from apps.api import audit, confirmations, handlers
from apps.api.call import Answer, Call


def reject(call: Call) -> Answer:
    """No: one conditional update, and an entry. A program may have said it, so it is no person's act."""
    assert call.actor is not None  # noqa: S101 - `enter` came first
    by = audit.actor_of(call.actor)
    with transaction.atomic(durable=True):
        row = confirmations.reject(call)
        activity.write(
            action=actions.API_CONFIRMATION_REJECTED,
            module=row.tool.partition(".")[0],
            mode=activity.Mode.AUTO,
            actor=by,
            resource_type="api_key" if by.kind == "key" else "",
            resource_uuid=by.uuid,
            target=row.tool,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={"tool": row.tool, "confirmation_uuid": str(row.pk)},
        )
    return handlers.answer({"status": "rejected", "confirmation_id": row.pk}, outcome="rejected")


def leave(call: Call) -> Answer:
    """Neither yes nor no: it waits on, and its state is still good."""
    row = confirmations.waiting(call, call.found_tool)
    left = int((row.expires_at - timezone.now()).total_seconds())
    return handlers.answer(
        {
            "status": "confirmation_required",
            "reason": "unanswered",
            "confirmation_id": row.pk,
            "expires_at": row.expires_at,
            "expires_in_seconds": max(0, left),
        },
        outcome="confirmation_required",
    )
