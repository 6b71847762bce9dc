"""The effect transaction T2 of a write (RF-15): spending, handler, answer, record and entries commit together or not at all."""

from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import connection, transaction

from apps.api import approvals, audit, confirmations, deciding, faults, guard, handlers, idempotency, outcomes
from apps.api.call import Answer, Call, Outcome
from apps.api.models import Approval, Confirmation
from apps.api.tool import Context, Tool

log = structlog.get_logger(__name__)

RESTARTS = 3


@dataclass(frozen=True, kw_only=True)
class Prompt:
    """The call must be confirmed first: what its prompt shows. `replaces` is the row whose values changed.

    Of an approved run: it goes back to the approvers, `why`.
    """

    preview: dict[str, Any]
    fingerprint: str
    replaces: Confirmation | None = None
    why: str = ""


@dataclass(kw_only=True)
class _Commit:
    """How far a transaction came; after `done` nothing changes the answer any more."""

    begun: bool = False
    done: bool = False

    def mark_done(self) -> None:
        self.done = True


def run(call: Call, tool: Tool) -> Outcome:
    """Run the write, or answer its prompt. Raises Problem for what ended it without a commit."""
    found = commit(call, tool, lambda: _write(call, tool))
    return prompt(call, tool, found) if isinstance(found, Prompt) else found


def prompt(call: Call, tool: Tool, wanted: Prompt) -> Answer:
    """Hold the call in a transaction of its own, at the default isolation: waiting codes are counted exactly there.

    An approved run goes back to its approvers instead.
    """
    if call.approval is not None:
        return _to_the_approvers(call, call.approval, wanted)

    def hold() -> Answer:
        if wanted.replaces is not None:
            confirmations.expire(wanted.replaces)
            call.replaces_uuid = wanted.replaces.uuid
        answer = confirmations.issue(
            call,
            tool,
            preview=wanted.preview,
            fingerprint=wanted.fingerprint,
            reason="changed" if wanted.replaces else None,
        )
        return outcomes.with_headers(call, answer)

    found = commit(call, tool, hold, repeatable=False)
    assert isinstance(found, Answer)  # noqa: S101 - `hold` answers
    return found


def _to_the_approvers(call: Call, approval: Approval, wanted: Prompt) -> Answer:
    approvals.reopen(approval, why=wanted.why, shown=wanted.preview, mark=wanted.fingerprint)
    call.settled = True
    return handlers.answer({"status": "pending_approval", "approval_id": approval.pk}, outcome="pending_approval")


def commit(
    call: Call,
    tool: Tool,
    work: Callable[[], Outcome | Prompt],
    *,
    repeatable: bool | None = None,
    owed: bool = True,
) -> Outcome | Prompt:
    """Run the work in a transaction with what the outcome owes (`call.before_commit`), again when it lost against another one.

    A Prompt leaves nothing behind. `repeatable` None: as the tool and the call ask for it. `owed` False: the call goes on after it.
    """
    if repeatable is None:
        repeatable = tool.danger is not None or call.is_confirmation or call.approval is not None
    for _ in range(RESTARTS):
        try:
            return _once(call, work, repeatable=repeatable, owed=owed)
        except Exception as error:
            if not faults.is_serialization(error):
                raise
            log.info("effect_started_again", tool=tool.name)
    return _once(call, work, repeatable=repeatable, owed=owed)


def _once(call: Call, work: Callable[[], Outcome | Prompt], *, repeatable: bool, owed: bool) -> Outcome | Prompt:
    state = _Commit()
    outcome: Outcome | None = None
    try:
        with transaction.atomic(durable=True):
            # Registered first, so it runs first: the commit happened, whatever a later hook does.
            transaction.on_commit(state.mark_done)
            _set_up(repeatable=repeatable)
            found = work()
            if isinstance(found, Prompt):
                transaction.set_rollback(True)
                return found
            outcome = found
            for finish in call.before_commit if owed else ():
                finish(outcome)
            _shield_hooks()
            state.begun = True
    except BaseException as error:
        if not state.done or outcome is None:
            # What is not owed yet, or only a prompt, can't have happened: the call goes on as one whose database went away.
            if owed and not _is_prompt(outcome) and _may_have_happened(state, error):
                call.unknown = True
                raise faults.maybe_committed(replayable=call.claim is not None and call.claim.replayable) from error
            raise
        log.error("after_commit_failed", tool=call.name, exc_info=error)
    if not state.done:
        raise handlers.Odd("the handler meddled with the transaction: it did not commit")
    call.settled = owed
    return outcome


def _is_prompt(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Answer) and outcome.outcome != "ok"


def _may_have_happened(state: _Commit, error: BaseException) -> bool:
    """A connection that broke during COMMIT leaves the effect unknown. SQLite is in this process: its COMMIT has an answer."""
    return state.begun and faults.is_gone(error) and connection.vendor != "sqlite"


def _set_up(*, repeatable: bool) -> None:
    """On PostgreSQL this is the transaction's first statement. SQLite began IMMEDIATE: its writer is alone."""
    if connection.vendor != "postgresql":
        return
    statement = f"SET LOCAL lock_timeout = '{faults.LOCK_WAIT}'"
    if repeatable:
        # Comparison and effect must see one state; a change in between raises instead of being overwritten.
        statement = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; {statement}"
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _write(call: Call, tool: Tool) -> Outcome | Prompt:
    """The handler behind a savepoint. A refusal that it declared rolls back to the savepoint; what was spent stays spent."""
    held = admit(call, tool)
    if held is not None:
        return held
    ctx = handlers.context(call)
    try:
        with transaction.atomic():
            answer = handlers.run(call, tool, ctx)
            if connection.needs_rollback:
                raise handlers.Odd("the handler swallowed a failed statement: its effect would be taken back silently")
            if connection.vendor == "postgresql":
                connection.check_constraints()
    except handlers.Declared as problem:
        return outcomes.declared(call, problem)
    audit.write_log_lines(call, tool, ctx)
    return outcomes.with_headers(call, answer)


def admit(call: Call, tool: Tool) -> Prompt | None:
    """The first half of T2: still my attempt? then what was held or approved is looked at again, or danger is decided.

    All of it on the state that the effect sees. A person's call is held whatever the danger is: without a redemption nothing of a session
    runs (LS-3).
    """
    if call.claim is not None:
        idempotency.must_be_current(call.claim)
    if call.approval is not None:
        return _approved(call, tool, call.approval)
    if call.is_confirmation:
        return _redeem(call, tool)
    if call.on_behalf is None and not _is_dangerous(call, tool):
        return None
    shown, mark = _previewed(call, tool)
    return Prompt(preview=shown, fingerprint=mark)


def _redeem(call: Call, tool: Tool) -> Prompt | None:
    """DG-3: the row's checks, a fresh preview of the same state, and the spending."""
    row = confirmations.find(call, tool)
    shown, mark = _previewed(call, tool)
    if mark != row.fingerprint:
        return Prompt(preview=shown, fingerprint=mark, replaces=row)
    confirmations.spend(row)
    return None


def _approved(call: Call, tool: Tool, approval: Approval) -> Prompt | None:
    """AP-4, on the state that the effect sees: still this attempt, the votes that count now, the values that the approvers saw."""
    approvals.must_be_current(approval)
    assert call.switches is not None  # noqa: S101 - `reopen` read them
    votes = deciding.counting(approval, call.switches)
    shown, mark = _previewed(call, tool)
    if mark != approval.fingerprint:
        return Prompt(preview=shown, fingerprint=mark, why="values_changed")
    if len(votes) < approval.approvals_needed:
        return Prompt(preview=shown, fingerprint=mark, why="votes_lost")
    call.approvers = tuple(str(vote.voter_id) for vote in votes)
    return None


def _is_dangerous(call: Call, tool: Tool) -> bool:
    if not callable(tool.danger):
        return tool.danger == "always"
    with guard.read_only():
        return handlers.is_dangerous(call, tool, handlers.context(call))


def _previewed(call: Call, tool: Tool) -> tuple[dict[str, Any], str]:
    ctx: Context = handlers.context(call, dry_run=True)
    with guard.read_only():
        return handlers.preview(call, tool, ctx)


def _shield_hooks() -> None:
    """Let every on_commit hook run, whatever another one raises; Django stops at the first otherwise."""
    hooks: Any = connection.run_on_commit
    hooks[:] = [(ids, _shielded(hook), True) for ids, hook, _ in hooks]


def _shielded(hook: Callable[[], object]) -> Callable[[], None]:
    def run_hook() -> None:
        try:
            hook()
        except (Exception, SystemExit, CancelledError) as error:
            # After the commit nothing may change the answer.
            log.error("on_commit_hook_failed", exc_info=error)

    return run_hook
