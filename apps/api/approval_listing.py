"""An approval as its requester sees it (SPEC 26), alone and in pages."""

import base64
import binascii
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db.models import Q
from django.utils import timezone

from apps.api import approval_state
from apps.api.models import Approval, Vote

_CHUNK = 100


def describe(approval: Approval, *, with_preview: bool = True) -> dict[str, Any]:
    """The object that `system.get_approval` answers. Reading computes the true state and writes nothing (AP-5)."""
    now = timezone.now()
    state, code = approval_state.true_state(approval, now=now)
    reported = approval_state.partial_of(approval)
    left = int((approval.expires_at - now).total_seconds()) if state == Approval.State.PENDING else 0
    shown = {"preview": approval.preview} if with_preview else {}
    return {
        "approval_id": approval.pk,
        "tool": approval.tool,
        "status": state.value,
        "code": code or None,
        "reason": _reason(approval, state, code),
        **shown,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "expires_in_seconds": max(0, left),
        "approvals": approval.approvals,
        "approvals_needed": approval.approvals_needed,
        "progress": 1.0 if state == Approval.State.DONE else approval_state.progress_of(reported),
        "partial": reported,
        "result": _document(approval) if state == Approval.State.DONE else None,
        "ended_at": approval.ended_at,
    }


def _reason(approval: Approval, state: Approval.State, code: str) -> str | None:
    """Why it ended without a result, in a sentence: the note of who rejected it, or what the run was refused with."""
    match state:
        case Approval.State.REJECTED:
            no = approval.votes.filter(decision=Vote.Decision.REJECT).last()
            return no.note if no is not None and no.note else None
        case Approval.State.FAILED:
            document = _document(approval) or {}
            return _WORDS.get(code) or document.get("detail")
        case _:
            return None


_WORDS = {
    "not_started": "Nobody started it in time after it was approved.",
    "interrupted": "The run was interrupted before it ended.",
    "changed": "What it would change kept changing while it waited.",
}


def _document(approval: Approval) -> Any:
    return None if approval.body is None else json.loads(bytes(approval.body))


def page(family: UUID, *, status: str | None, limit: int, cursor: str | None) -> dict[str, Any]:
    """`{"approvals", "next_cursor"}` of one family, the newest first. ValueError for a cursor that is none."""
    found: list[Approval] = []
    for approval in _newest_first(family, cursor):
        if status is None or approval_state.true_state(approval, now=timezone.now())[0] == status:
            found.append(approval)
        if len(found) > limit:
            break
    more = len(found) > limit
    return {
        "approvals": [describe(approval, with_preview=False) for approval in found[:limit]],
        "next_cursor": cursor_of(found[limit - 1]) if more else None,
    }


def _newest_first(family: UUID, cursor: str | None) -> Iterator[Approval]:
    rows = Approval.objects.filter(family=family).select_related("key").order_by("-created_at", "pk")
    after = None if cursor is None else position(cursor)
    while True:
        later = (
            rows if after is None else rows.filter(Q(created_at__lt=after[0]) | Q(created_at=after[0], pk__gt=after[1]))
        )
        chunk = list(later[:_CHUNK])
        yield from chunk
        if len(chunk) < _CHUNK:
            return
        after = (chunk[-1].created_at, chunk[-1].pk)


def cursor_of(approval: Approval) -> str:
    """Where the next page begins: after this one."""
    text = json.dumps([approval.created_at.isoformat(), str(approval.pk)])
    return base64.urlsafe_b64encode(text.encode()).decode()


def position(cursor: str) -> tuple[datetime, UUID]:
    """What `cursor_of` made it from. ValueError for a cursor that is none."""
    try:
        created, uuid = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        at = datetime.fromisoformat(created)
        return (at.astimezone(UTC), UUID(uuid)) if at.tzinfo else _odd()
    except (binascii.Error, TypeError, AttributeError, ValueError, OverflowError):
        raise ValueError("no cursor") from None


def _odd() -> Any:
    raise ValueError("a time without a zone")
