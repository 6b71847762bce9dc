"""Calls that are held (DG-1 to DG-4, LS-3): previewed first, and run once by a second word while the values are the same.

The second word of a key or a visitor is a code. A person's is their own: any live session of theirs confirms or rejects the row.
"""

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import connection
from django.utils import timezone

from apps.api import callers, faults, handlers, ratelimit
from apps.api.call import Answer, Call
from apps.api.key_text import ALPHABET
from apps.api.models import Confirmation
from apps.api.problems import Problem
from apps.api.ratelimit import Bucket
from apps.api.tool import Tool

State = Confirmation.State

MAX_WAITING = 100
WRONG_CODES, WRONG_CODES_SECONDS = 10, 600
_CODE_LENGTH = 32  # of 62 characters: 190 bits


class WrongCode(Problem):
    """A code that is nobody's or another caller's. Counted outside the transaction that it ended (DG-4)."""


def issue(call: Call, tool: Tool, *, preview: dict[str, Any], fingerprint: str, reason: str | None = None) -> Answer:
    """Hold the call and answer its prompt, in the transaction that is open. Raises Problem when too many wait already."""
    caller = _caller(call, tool)
    _refuse_too_many(caller)
    code = None if call.on_behalf else "tc_" + "".join(secrets.choice(ALPHABET) for _ in range(_CODE_LENGTH))
    minutes = _minutes(call)
    now = timezone.now()
    row = Confirmation.objects.create(
        caller=caller,
        tool=tool.name,
        input_hash=call.input_hash,
        fingerprint=fingerprint,
        digest=None if code is None else _digest(code),
        actor_name=callers.name(call),
        request_id=call.entrance.request_id,
        created_at=now,
        expires_at=now + timedelta(minutes=minutes),
    )
    call.confirmation_uuid = row.uuid
    prompt: dict[str, Any] = {
        "status": "confirmation_required",
        **({} if code is None else {"confirm_token": code}),
        "confirmation_id": row.uuid,
        "preview": preview,
        "expires_at": row.expires_at,
        "expires_in_seconds": minutes * 60,
    }
    return handlers.answer(prompt if reason is None else {**prompt, "reason": reason}, outcome="confirmation_required")


def find(call: Call, tool: Tool) -> Confirmation:
    """The row that the call redeems. Raises WrongCode or Problem with DG-3's reasons, in its order; the row stays as it is."""
    row = _meant(call, tool)
    call.confirmation_uuid = row.uuid
    _must_be_of(row, call, tool)
    _must_wait(row)
    return row


def _meant(call: Call, tool: Tool) -> Confirmation:
    """The caller's own row: by its uuid for a person and for a signed state, else by its code. Nobody's and another's are one answer."""
    if call.redeems or call.elicited:
        return _own(callers.of(call), call.asked_uuid)
    code = _digest(call.control["confirm_token"])
    row = Confirmation.objects.filter(digest=code, caller=_caller(call, tool)).first()
    if row is None:
        raise WrongCode("confirm_token_invalid", "This confirmation is not valid.", reason="invalid")
    return row


def _own(caller: str | None, uuid: UUID | None) -> Confirmation:
    row = Confirmation.objects.filter(pk=uuid, caller=caller).first() if caller and uuid else None
    if row is None:
        raise refused("invalid", "This confirmation is not valid.")
    return row


def _must_be_of(row: Confirmation, call: Call, tool: Tool) -> None:
    if row.tool != tool.name or row.input_hash != call.input_hash:
        raise refused(
            "other_arguments", "This confirmation belongs to another call: tool and input must be the previewed ones."
        )


def _must_wait(row: Confirmation) -> None:
    if row.state != State.WAITING:
        raise refused(row.state, f"This confirmation was {row.state} already.")
    if row.expires_at <= timezone.now():
        raise refused("expired", "This confirmation has expired. Make the call again for a new preview.")


def spend(row: Confirmation) -> None:
    """The row's one use. The others wait here for the row and are refused."""
    _end(row, State.USED)


def expire(row: Confirmation) -> None:
    """The previewed values changed: the row ends, and a new prompt takes its place."""
    _end(row, State.EXPIRED)


def expire_late(uuid: UUID, *, now: datetime) -> bool:
    """End a row whose time is over, whoever's it is; False when it is not, or was decided. Waits for who spends it at this moment."""
    late = Confirmation.objects.filter(pk=uuid, state=State.WAITING, expires_at__lte=now)
    return bool(late.update(state=State.EXPIRED, decided_at=now))


def waiting(call: Call, tool: Tool) -> Confirmation:
    """The caller's row that `asked_uuid` names, for the input of the call. Raises Problem with DG-3's reasons, in its order."""
    row = _own(callers.of(call), call.asked_uuid)
    _must_be_of(row, call, tool)
    _must_wait(row)
    return row


def reject(call: Call) -> Confirmation:
    """The caller's no to a held call of theirs, in the transaction that is open. Raises Problem with DG-3's reasons."""
    faults.wait_at_most()  # a run may have spent it and not be over
    row = _own(callers.of(call), call.asked_uuid)
    _must_wait(row)
    _end(row, State.REJECTED)
    return row


def _end(row: Confirmation, state: Confirmation.State) -> None:
    """The one conditional update that takes a row out of waiting; who loses the race learns what became of it."""
    if Confirmation.objects.filter(pk=row.pk, state=State.WAITING).update(state=state, decided_at=timezone.now()):
        return
    now = Confirmation.objects.filter(pk=row.pk).values_list("state", flat=True).first()
    raise refused(now or "invalid", "This confirmation was decided already.")


def count_wrong(call: Call, tool: Tool) -> None:
    """Guessing is bounded: at the eleventh wrong code in ten minutes the answer is 429."""
    bucket = Bucket(policy="code", name=f"code:{_caller(call, tool)}", budget=WRONG_CODES, seconds=WRONG_CODES_SECONDS)
    verdict = ratelimit.charge([(bucket, 1)])
    if not verdict.admitted:
        headers = {"Retry-After": str(verdict.retry_after or WRONG_CODES_SECONDS)}
        raise Problem("rate_limited", "Too many wrong codes.", headers=headers)


def prune(*, keep_days: int, batch: int = 1_000) -> int:
    """Delete rows past their time, in batches; how many there were."""
    over = Confirmation.objects.filter(expires_at__lt=timezone.now() - timedelta(days=keep_days))
    deleted = 0
    while found := list(over.values_list("pk", flat=True)[:batch]):
        deleted += over.filter(pk__in=found).delete()[0]
    return deleted


def refused(reason: str, detail: str) -> Problem:
    return Problem("confirm_token_invalid", detail, reason=reason)


def _minutes(call: Call) -> int:
    assert call.switches is not None  # noqa: S101 - the first step read them
    return call.switches.api_hold_minutes if call.on_behalf else call.switches.api_code_minutes


def _caller(call: Call, tool: Tool) -> str:
    caller = callers.of(call)
    if caller is None:
        # A code of everybody would be nobody's: a visitor who can't be told apart can't confirm.
        raise Problem(
            "validation_failed",
            "A call that needs a confirmation needs a client token.",
            errors=[{"pointer": f"/{tool.client_token}", "message": "This field is required."}],
        )
    return caller


def _refuse_too_many(caller: str) -> None:
    """At most 100 codes wait for one caller; counted one caller at a time, so exactly."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"confirmations {caller}"])
    waiting = Confirmation.objects.filter(caller=caller, state=State.WAITING, expires_at__gt=timezone.now())
    if waiting[:MAX_WAITING].count() >= MAX_WAITING:
        raise Problem(
            "conflict",
            "Too many codes of this caller wait for a confirmation.",
            retry="later",
            reason="too_many_waiting",
        )


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
