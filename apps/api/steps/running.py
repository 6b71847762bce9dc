"""Steps 7 to 9: asked before, preview, run (RF-7 to RF-9)."""

from functools import partial

from apps.api import (
    callers,
    confirmations,
    effect,
    external,
    guard,
    handlers,
    idempotency,
    lifesigns,
    queueing,
    schemas,
)
from apps.api.call import Call, Outcome
from apps.api.idempotency import Claim
from apps.api.steps import validation
from apps.api.tool import Tool


def asked_before(call: Call) -> Outcome | None:
    """RF-7: claim the record of this call's key, or answer what its finished twin answered. A preview asks nothing."""
    tool = call.found_tool
    key = _idempotency_key(call)
    if not tool.is_write or call.dry_run or (key is None and not tool.is_external):
        return None
    found = idempotency.claim(call, tool, key)
    if not isinstance(found, Claim):
        return found
    call.claim = found
    call.before_commit.insert(0, partial(idempotency.finish, found))
    call.afterwards.insert(0, partial(_release, call, found))
    lifesigns.keep(found.work)
    return None


def _idempotency_key(call: Call) -> str | None:
    text = call.control.get("idempotency_key")
    if text is None:
        return None
    key = idempotency.parse_key(text)
    if key is None:
        message = "The key must be 1 to 255 printable ASCII characters, bare or as a quoted string."
        raise validation.invalid([schemas.fault("/idempotency_key", message)])
    if callers.of(call) is None:
        raise validation.invalid(
            [schemas.fault("/idempotency_key", "Without a client token nobody can tell whose key this is.")]
        )
    return key


def _release(call: Call, claim: Claim, outcome: Outcome) -> None:
    try:
        if not call.settled and not call.unknown:
            idempotency.release(claim, outcome, ran=call.ran_outside)
    finally:
        lifesigns.let_go(claim.work)


def danger(call: Call) -> Outcome | None:
    """RF-8, what can be told before the effect's transaction: a preview is answered, and what must be approved is queued.

    Redeeming a code and deciding danger belong to the state that the effect sees: `effect.admit` does both.
    """
    tool = call.found_tool
    if not tool.is_write or tool.is_direct:
        return None
    if call.dry_run:
        return _dry_run(call, tool)
    if call.actor is not None and call.actor.key is not None and call.actor.key.requires_approval:
        if call.is_confirmation:
            raise confirmations.refused("invalid", "A key that requires approval has no codes.")
        return queueing.run(call, tool)
    return None


def _dry_run(call: Call, tool: Tool) -> Outcome:
    if call.is_confirmation:
        raise validation.invalid([schemas.fault("/confirm_token", "A preview takes no code.")])
    with guard.read_only():
        shown, _ = handlers.preview(call, tool, handlers.context(call, dry_run=True))
    return handlers.answer({"status": "preview", "preview": shown}, outcome="preview")


def run(call: Call) -> Outcome:
    """RF-9: a read where nothing can be written, a write in its transaction."""
    tool = call.found_tool
    if tool.is_write:
        return _run_write(call, tool)
    with guard.read_only():
        return handlers.run(call, tool, handlers.context(call))


def _run_write(call: Call, tool: Tool) -> Outcome:
    try:
        return external.run(call, tool) if tool.is_external else effect.run(call, tool)
    except confirmations.WrongCode:
        confirmations.count_wrong(call, tool)
        raise
