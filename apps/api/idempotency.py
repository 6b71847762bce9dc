"""Asked once (SPEC 10): one record per caller x tool x key, claimed in a transaction of its own before anything runs.

Every change of a record is one conditional UPDATE that names the attempt, so that an attempt which was overtaken changes nothing.
"""

import json
import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, assert_never
from uuid import UUID, uuid4

import structlog
from django.db import transaction
from django.utils import timezone

from apps.api import approval_state, callers, faults, lifesigns
from apps.api.call import REPLAYED, Answer, Call, Outcome, Refusal
from apps.api.lifesigns import Work
from apps.api.models import Approval, IdempotencyRecord
from apps.api.problems import Kind, Problem
from apps.api.tool import Tool

log = structlog.get_logger(__name__)

State = IdempotencyRecord.State

RETRY_AFTER_SECONDS = 2
_ROUNDS = 5
_PRINTABLE = re.compile(r"[\x20-\x7e]{1,255}")
_QUOTED = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')


@dataclass(frozen=True, kw_only=True)
class Claim:
    """The right to run one attempt of a record. `replayable` False: the key is our own, and nobody can repeat the call with it."""

    uuid: UUID
    attempt: int
    external: bool
    replayable: bool = True

    @property
    def work(self) -> Work:
        return Work(kind="call", uuid=self.uuid, attempt=self.attempt)


def parse_key(text: str) -> str | None:
    """The key: 1 to 255 printable ASCII characters, bare or in the quoted form of the IETF draft; None when malformed (ID-1)."""
    if text.startswith('"'):
        quoted = _QUOTED.fullmatch(text)
        text = re.sub(r"\\(.)", r"\1", quoted.group(1)) if quoted else ""
    return text if _PRINTABLE.fullmatch(text) else None


def claim(call: Call, tool: Tool, key: str | None) -> Claim | Outcome:
    """Claim the record, or the stored outcome of a finished twin. Raises Problem for every other twin.

    Without a key the record is the call's own: an external effect always has one (ID-3).
    """
    wanted = IdempotencyRecord(
        caller=callers.of(call) or "public",
        tool=tool.name,
        key=key or f"{IdempotencyRecord.OWN}{uuid4().hex}",
        input_hash=call.input_hash,
        external=tool.is_external,
        actor_name=callers.name(call),
        request_id=call.entrance.request_id,
    )
    for _ in range(_ROUNDS):
        with transaction.atomic(durable=True):
            faults.wait_at_most()  # a twin may hold the record while it finishes
            found = _claim(wanted, keep_seconds=_keep_seconds(call), replayable=key is not None)
        if isinstance(found, Problem):
            raise found
        if found is not None:
            return found
    raise in_progress()


def _claim(wanted: IdempotencyRecord, *, keep_seconds: int, replayable: bool) -> Claim | Outcome | Problem | None:
    """One look at the record. None: it changed meanwhile, look again. A Problem is returned, so that this transaction commits."""
    IdempotencyRecord.objects.bulk_create([wanted], ignore_conflicts=True)
    same = IdempotencyRecord.objects.filter(caller=wanted.caller, tool=wanted.tool, key=wanted.key)
    record = same.select_related("approval").first()
    if record is None:
        return None
    if record.uuid == wanted.uuid:
        return _running(record, attempt=1, replayable=replayable)
    if (record.state != State.RUNNING or record.input_hash != wanted.input_hash) and _is_over(record, keep_seconds):
        IdempotencyRecord.objects.filter(pk=record.pk, state=record.state, attempt=record.attempt).delete()
        return None
    if record.input_hash != wanted.input_hash:
        return Problem(
            "idempotency_key_reused", "This key came with another input before. Use a new key for a new call."
        )
    return _of_twin(record)


def _of_twin(record: IdempotencyRecord) -> Claim | Outcome | Problem | None:
    """What a repeat of the same call gets."""
    match State(record.state):
        case State.RUNNING:
            return _overtake(record)
        case State.WAITING:
            return _of_approval(record) or _move_on(record)
        case State.DONE:
            return replay(record)
        case State.UNKNOWN:
            return outcome_unknown()
        case never:
            assert_never(never)


def _of_approval(record: IdempotencyRecord) -> Outcome | Problem | None:
    """What became of the approval that the record waits for; None while it waits, and for a record that waits for a code."""
    approval = record.approval
    if approval is None:
        return None
    state, code = approval_state.true_state(approval, now=timezone.now())
    if state in Approval.LIVE:
        return None
    if state == Approval.State.DONE:
        return _replayed(approval.status, approval.body)
    return of_ended(state, code, external=record.external)


def of_ended(state: Approval.State, code: str, *, external: bool) -> Problem:
    """What a call is refused with whose approval ended so, without an answer of the handler."""
    if external and code == "interrupted":
        return outcome_unknown()
    return Problem(
        "conflict", f"The approval of this call is {state}.", retry="new_key", reason=f"approval_{state.value}"
    )


def _overtake(record: IdempotencyRecord) -> Claim | Problem | None:
    """A twin that gives no sign of life any more: a database tool's work is gone with it, an external one's may have happened."""
    if lifesigns.is_alive(Work(kind="call", uuid=record.uuid, attempt=record.attempt)):
        return in_progress()
    if not record.external:
        return _move_on(record)
    moved = this_attempt(record.uuid, record.attempt).update(state=State.UNKNOWN)
    return outcome_unknown() if moved else None


def _move_on(record: IdempotencyRecord) -> Claim | None:
    """Claim the next attempt of a record that nobody runs."""
    seen = IdempotencyRecord.objects.filter(pk=record.pk, state=record.state, attempt=record.attempt)
    if not seen.update(state=State.RUNNING, attempt=record.attempt + 1):
        return None
    return _running(record, attempt=record.attempt + 1)


def _running(record: IdempotencyRecord, *, attempt: int, replayable: bool = True) -> Claim:
    found = Claim(uuid=record.uuid, attempt=attempt, external=record.external, replayable=replayable)
    lifesigns.begin(found.work)
    return found


def must_be_current(claim: Claim) -> None:
    """The first question of the effect's transaction: has nobody overtaken this attempt?"""
    if not this_attempt(claim.uuid, claim.attempt).exists():
        raise in_progress()


def finish(claim: Claim, outcome: Outcome) -> None:
    """In the effect's transaction, with the encoded outcome: stored for replays, or waiting when the call ended in a prompt."""
    if not _finish(claim, outcome):
        raise outcome_unknown() if claim.external else in_progress()


def _finish(claim: Claim, outcome: Outcome) -> int:
    """How many rows it changed: none when the attempt was overtaken."""
    mine = this_attempt(claim.uuid, claim.attempt)
    if isinstance(outcome, Answer) and outcome.outcome != "ok":
        return _wait(claim)
    status = outcome.status if isinstance(outcome, Refusal) else 200
    if status >= 500 and not claim.external:
        # Nothing of it stands, and the caller is to repeat it: a stored one would be the answer for ever.
        return _deleted(mine)
    return int(mine.update(state=State.DONE, status=status, body=outcome.body, finished_at=timezone.now()))


def _wait(claim: Claim) -> int:
    """The hash is kept for the repeat with the code. A key of our own goes: nobody can repeat it."""
    mine = this_attempt(claim.uuid, claim.attempt)
    return int(mine.update(state=State.WAITING)) if claim.replayable else _deleted(mine)


def _deleted(records: Any) -> int:
    return int(records.delete()[0])


def release(claim: Claim, outcome: Outcome, *, ran: bool) -> None:
    """After a call that did not finish its record: nothing of what it did stands, or nobody knows.

    `ran`: the handler of an external tool was started. A refusal of step 8 keeps the hash and no answer; a fault leaves no record.
    """
    mine = this_attempt(claim.uuid, claim.attempt)
    if claim.external and ran:
        mine.update(state=State.UNKNOWN)
    elif isinstance(outcome, Refusal) and (
        outcome.status >= 500 or outcome.problem.context.get("reason") in _TRANSIENT
    ):
        mine.delete()
    else:
        _wait(claim)


_TRANSIENT = ("serialization", "busy")


def replay(record: IdempotencyRecord) -> Outcome:
    """The stored outcome, byte for byte, marked."""
    return _replayed(record.status, record.body)


def stored(status: int | None, body: Any) -> Outcome:
    """The outcome that was stored, byte for byte."""
    body = bytes(body or b"")
    document = json.loads(body)
    if status == 200:
        return Answer(result=document, body=body)
    kind = Kind(code=document["code"], status=document["status"], title=document["title"], retry=document["retry"])
    return Refusal(problem=Problem(kind.code, document["detail"], kind=kind), body=body)


def _replayed(status: int | None, body: Any) -> Outcome:
    return replace(stored(status, body), headers=REPLAYED, replayed=True)


def in_progress() -> Problem:
    return Problem(
        "idempotency_in_progress",
        "The first call with this key is still running. Repeat the call with the same key.",
        headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
    )


def outcome_unknown() -> Problem:
    return Problem(
        "idempotency_outcome_unknown",
        "The call was interrupted outside the database: it may have happened. Look before you call again; an operator can settle it.",
    )


def this_attempt(uuid: UUID, attempt: int) -> Any:
    """The record while this attempt of it runs: what every conditional change is made through."""
    return IdempotencyRecord.objects.filter(pk=uuid, attempt=attempt, state=State.RUNNING)


def _is_over(record: IdempotencyRecord, keep_seconds: int) -> bool:
    """Kept from finishing (ID-4), its approval's too; one that did not finish is kept from its beginning."""
    if record.approval is not None and record.state == State.WAITING:
        ended = record.approval.ended_at
        return ended is not None and ended < timezone.now() - timedelta(seconds=keep_seconds)
    since = record.finished_at if record.state == State.DONE else record.created_at
    over = timezone.now() - timedelta(seconds=keep_seconds)
    may_go = record.state in (State.DONE, State.WAITING) or is_dead(record)
    return may_go and since is not None and since < over


def is_dead(record: IdempotencyRecord) -> bool:
    """A database tool's attempt whose process is gone: nothing of it stands."""
    work = Work(kind="call", uuid=record.uuid, attempt=record.attempt)
    return record.state == State.RUNNING and not record.external and not lifesigns.is_alive(work)


def _keep_seconds(call: Call) -> int:
    hours: int = call.switches.idempotency_retention if call.switches else 72
    return hours * 3600
