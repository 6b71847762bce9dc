"""The chains of steps, and the one place where a call's outcome is made (RF-12)."""

from asyncio import CancelledError
from collections.abc import Callable, Sequence

import structlog
from django.db import connections, transaction

from apps.api import faults, guard, observers, outcomes
from apps.api.call import Call, Outcome, Refusal
from apps.api.problems import Problem
from apps.api.steps import approved, door, elicited, lookup, running, sessions, toll, validation

log = structlog.get_logger(__name__)

Step = Callable[[Call], Outcome | None]

# Steps 1 to 3: the switch, no credential in the URL, who are you.
ENTER: Sequence[Step] = (door.switch, door.no_credential_in_url, door.authenticate)

# Steps 4 to 9 of a key's call.
KEY: Sequence[Step] = (
    lookup.read_input,
    lookup.look_up,
    toll.charge,
    validation.open_audit,
    validation.validate,
    running.asked_before,
    running.danger,
    running.run,
)

# A visitor pays at the entry, before anything is read or looked up.
PUBLIC: Sequence[Step] = (
    toll.charge_entry,
    lookup.read_input,
    lookup.look_up,
    toll.charge,
    validation.validate,
    running.asked_before,
    running.danger,
    running.run,
)

# A message is read before anybody knows what it asks for; what is no call of a tool then costs one unit (MC-1).
MESSAGE: Sequence[Step] = (lookup.read_message,)
# A visitor's large one is paid before it is read, like the body of a call, even if it turns out to be a notification (RF-14).
LARGE_MESSAGE: Sequence[Step] = (toll.charge_entry, lookup.read_message)
METHOD: Sequence[Step] = (toll.charge_listing,)

# What a client answered when it was asked for the second word, unless it is yes: that runs the call (MC-4). A no needs no good input.
DECLINE: Sequence[Step] = (lookup.look_up, toll.charge_listing, elicited.reject)
LEAVE: Sequence[Step] = (lookup.look_up, toll.charge_listing, validation.validate, elicited.leave)
PUBLIC_DECLINE: Sequence[Step] = (toll.charge_entry, lookup.look_up, elicited.reject)
PUBLIC_LEAVE: Sequence[Step] = (toll.charge_entry, lookup.look_up, validation.validate, elicited.leave)

LISTING: Sequence[Step] = (lookup.find_scopes, toll.charge_listing)

# A person's live session, in process: a read runs, a write is held (LS-1 to LS-3).
SESSION: Sequence[Step] = (
    sessions.refuse_impersonated,
    sessions.open_session,
    lookup.look_up,
    toll.charge,
    validation.open_audit,
    validation.check_values,
    lookup.refuse_key_text,
    validation.validate,
    running.danger,
    running.run,
)

# The person confirms a held write: the whole way again, with the rights of now.
REDEEM: Sequence[Step] = (
    sessions.refuse_impersonated,
    sessions.open_session,
    lookup.look_up,
    toll.charge,
    validation.open_audit,
    validation.check_values,
    lookup.refuse_key_text,
    validation.validate,
    running.asked_before,
    running.run,
)

# An approved write: nothing is paid again, and nothing that was true before is believed (AP-4).
APPROVED: Sequence[Step] = (
    approved.reopen,
    lookup.look_up,
    approved.owe_the_end,
    validation.open_audit,
    validation.validate,
    running.run,
)

REJECT: Sequence[Step] = (sessions.refuse_impersonated, sessions.open_session, sessions.reject)

SESSION_LISTING: Sequence[Step] = (
    sessions.refuse_impersonated,
    sessions.open_session,
    lookup.find_scopes,
    toll.charge_listing,
)


def go(call: Call, chain: Sequence[Step]) -> Outcome | None:
    """Send the call through the chain. None: every step let it go on."""
    try:
        outcome = _outcome(call, chain)
    except BaseException as error:
        # This thread is told to end. The call lets go of what it holds first: a process that lives on would renew its lease for ever.
        observers.ended(call, _finished(call, outcomes.refusal(call, _fault(call, error))))
        raise
    return None if outcome is None else observers.ended(call, _finished(call, outcome))


def _outcome(call: Call, chain: Sequence[Step]) -> Outcome | None:
    try:
        _refuse_callers_transaction()
        with guard.nothing_left_open():
            return _first_outcome(call, chain)
    except Problem as problem:
        return outcomes.refusal(call, problem)
    except (Exception, SystemExit, CancelledError) as error:
        return outcomes.refusal(call, _fault(call, error))


def _first_outcome(call: Call, chain: Sequence[Step]) -> Outcome | None:
    for step in chain:
        outcome = step(call)
        if outcome is not None:
            return outcomes.with_headers(call, outcome)
    return None


def _finished(call: Call, outcome: Outcome) -> Outcome:
    """What must happen at the end, each whatever the others do. An answer whose entry can't be written is no answer."""
    failed: Exception | None = None
    for finish in call.afterwards:
        try:
            finish(outcome)
        except Exception as error:
            log.error("not_finished", tool=call.name, exc_info=error)
            failed = error
    if failed is None or call.settled or isinstance(outcome, Refusal):
        return outcome
    return outcomes.refusal(call, faults.problem_of(failed) or faults.unavailable())


def _fault(call: Call, error: BaseException) -> Problem:
    """The generic answer; the detail goes to the log with the request id and never to the caller."""
    known = faults.problem_of(error)
    if call.ran_outside:
        log.error("call_failed_outside", tool=call.name, exc_info=error)
        return faults.maybe_happened(gone=faults.is_gone(error))
    if known is not None:
        log.warning("database_fault", tool=call.name, problem=known.code, exc_info=error)
        return known
    log.error("call_failed", tool=call.name, request_id=call.entrance.request_id, exc_info=error)
    return Problem("internal_error", outcomes.FAILED)


def _refuse_callers_transaction() -> None:
    """The gate's own transactions must be outermost, or a caller's rollback would take a committed answer back (RF-15)."""
    for connection in connections.all(initialized_only=True):
        if connection.in_atomic_block or (connection.connection is not None and not connection.autocommit):
            raise transaction.TransactionManagementError("The gate does not run inside a caller's transaction.")
