"""Codes (DG-1 to DG-4): a dangerous call is previewed, and a second call with its code runs it once, while the values are the same."""

import hashlib
import secrets
from datetime import timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from apps.api import callers, handlers, ratelimit
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
    minutes = call.switches.api_code_minutes if call.switches else 10
    now = timezone.now()
    code = "tc_" + "".join(secrets.choice(ALPHABET) for _ in range(_CODE_LENGTH))
    row = Confirmation.objects.create(
        caller=caller,
        tool=tool.name,
        input_hash=call.input_hash,
        fingerprint=fingerprint,
        digest=_digest(code),
        actor_name=callers.name(call),
        request_id=call.entrance.request_id,
        created_at=now,
        expires_at=now + timedelta(minutes=minutes),
    )
    call.confirmation_uuid = row.uuid
    prompt: dict[str, Any] = {
        "status": "confirmation_required",
        "confirm_token": code,
        "confirmation_id": row.uuid,
        "preview": preview,
        "expires_at": row.expires_at,
        "expires_in_seconds": minutes * 60,
    }
    return handlers.answer(prompt if reason is None else {**prompt, "reason": reason}, outcome="confirmation_required")


def find(call: Call, tool: Tool, code: str) -> Confirmation:
    """The row that the code redeems. Raises WrongCode or Problem with DG-3's reasons, in its order; the row stays as it is."""
    row = Confirmation.objects.filter(digest=_digest(code), caller=_caller(call, tool)).first()
    if row is None:
        raise WrongCode("confirm_token_invalid", "This code is not valid.", reason="invalid")
    call.confirmation_uuid = row.uuid
    if row.tool != tool.name or row.input_hash != call.input_hash:
        raise refused(
            "other_arguments", "This code belongs to another call: tool and input must be the previewed ones."
        )
    if row.state != State.WAITING:
        raise refused(row.state, f"This code was {row.state} already.")
    if row.expires_at <= timezone.now():
        raise refused("expired", "This code has expired. Call without it for a new preview.")
    return row


def spend(row: Confirmation) -> None:
    """The row's one use. The others wait here for the row and are refused."""
    if not _still_waiting(row).update(state=State.USED, decided_at=timezone.now()):
        raise refused("used", "This code was used already.")


def expire(row: Confirmation) -> None:
    """The previewed values changed: the row ends, and a new prompt takes its place."""
    if not _still_waiting(row).update(state=State.EXPIRED, decided_at=timezone.now()):
        raise refused("used", "This code was used already.")


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


def _still_waiting(row: Confirmation) -> Any:
    return Confirmation.objects.filter(pk=row.pk, state=State.WAITING)


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
