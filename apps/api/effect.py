"""The effect transaction T2 of a write (RF-15): handler, answer and entries commit together or not at all."""

from asyncio import CancelledError
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import structlog
from django.db import connection, transaction

from apps.api import audit, faults, guard, handlers, outcomes
from apps.api.call import Call, Outcome
from apps.api.problems import Problem
from apps.api.tool import Tool

log = structlog.get_logger(__name__)

RESTARTS = 3
LOCK_WAIT = "5s"


@dataclass(kw_only=True)
class _Commit:
    """How far the transaction came; after `done` nothing changes the answer any more."""

    begun: bool = False
    done: bool = False

    def mark_done(self) -> None:
        self.done = True


def run(call: Call, tool: Tool) -> Outcome:
    """Run the write in its transaction. Raises Problem for what ended it without a commit."""
    for _ in range(RESTARTS):
        try:
            return _once(call, tool)
        except Exception as error:
            if not faults.is_serialization(error):
                raise
            log.info("effect_started_again", tool=tool.name)
    return _once(call, tool)


def _once(call: Call, tool: Tool) -> Outcome:
    commit = _Commit()
    outcome: Outcome | None = None
    try:
        with transaction.atomic(durable=True):
            # Registered first, so it runs first: the commit happened, whatever a later hook does.
            transaction.on_commit(commit.mark_done)
            _set_up(tool)
            outcome = _effect(call, tool)
            for finish in call.before_commit:
                finish(outcome)
            _shield_hooks()
            commit.begun = True
    except BaseException as error:
        if not commit.done or outcome is None:
            if _may_have_happened(commit, error):
                raise faults.maybe_committed() from error
            raise
        log.error("after_commit_failed", tool=tool.name, exc_info=error)
    if not commit.done:
        raise handlers.Odd("the handler meddled with the transaction: it did not commit")
    if call.audit is not None:
        call.audit.written = True
    return outcome


def _may_have_happened(commit: _Commit, error: BaseException) -> bool:
    """A connection that broke during COMMIT leaves the effect unknown. SQLite is in this process: its COMMIT has an answer."""
    return commit.begun and faults.is_gone(error) and connection.vendor != "sqlite"


def _set_up(tool: Tool) -> None:
    """On PostgreSQL this is the transaction's first statement. SQLite began IMMEDIATE: its writer is alone."""
    if connection.vendor != "postgresql":
        return
    statement = f"SET LOCAL lock_timeout = '{LOCK_WAIT}'"
    if callable(tool.danger):
        # The rule and the effect must see one state; a change in between raises instead of being overwritten.
        statement = f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; {statement}"
    with connection.cursor() as cursor:
        cursor.execute(statement)


def _effect(call: Call, tool: Tool) -> Outcome:
    """The handler behind a savepoint. A refusal that it declared rolls back to the savepoint, and the transaction goes on."""
    _refuse_danger(call, tool)
    ctx = handlers.context(call)
    try:
        with transaction.atomic():
            answer = handlers.run(call, tool, ctx)
            if connection.needs_rollback:
                raise handlers.Odd("the handler swallowed a failed statement: its effect would be taken back silently")
            if connection.vendor == "postgresql":
                connection.check_constraints()
    except handlers.Declared as problem:
        return outcomes.refusal(call, problem)
    audit.write_log_lines(call, tool, ctx)
    return outcomes.with_headers(call, answer)


def _refuse_danger(call: Call, tool: Tool) -> None:
    """A conditional danger is decided again, on the state that the effect sees."""
    if not callable(tool.danger):
        return
    with guard.read_only():
        dangerous = handlers.is_dangerous(call, tool, handlers.context(call))
    if dangerous:
        raise unconfirmed()


def unconfirmed() -> Problem:
    return Problem(
        "unavailable",
        "This call needs a confirmation, and this server can't take one yet. Nothing was changed; dry_run shows the preview.",
        retry="never",
    )


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
