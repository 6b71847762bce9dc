"""Step 5, and every other place where a call pays (RF-14, RL-1 to RL-3)."""

from typing import Any

from apps.api import (
    callers,
    pricing,
    ratelimit,
)
from apps.api.call import Call
from apps.api.problems import Problem
from apps.api.ratelimit import Bucket


def charge_entry(call: Call) -> None:
    """A public call pays one unit of its network before anything is read or looked up (RL-3), and once."""
    if not call.entry_paid:
        _charge(call, [(_network_bucket(call), 1)])
        call.entry_paid = True


def charge(call: Call) -> None:
    """The price of the call, from the key family's or the person's budget; a public call's from its token's and its network's."""
    tool = call.found_tool
    price = pricing.cost(tool, call.input)
    if call.audience == "admin":
        _charge(call, [(_own_bucket(call), price)])
        return
    if price > _network_bucket(call).budget:
        # One unit of it is paid already; the rest would wait for ever.
        raise _never_fits(call, _network_bucket(call).budget)
    token = callers.of(call)
    wanted = [(_token_bucket(call, token), price)] if token else []
    _charge(call, [*wanted, (_network_bucket(call), price - 1)] if price > 1 else wanted)


def charge_listing(call: Call) -> None:
    """A listing costs one unit (RL-1)."""
    if call.audience == "admin":
        _charge(call, [(_own_bucket(call), 1)])
    else:
        charge_entry(call)


def pay_one(call: Call) -> None:
    """The unit of a call that is refused before its price is known; a public call has paid it at the entry."""
    if call.audience == "admin" and call.approval is None:
        _charge(call, [(_own_bucket(call), 1)])


def _charge(call: Call, wanted: list[tuple[Bucket, int]]) -> None:
    if not wanted:
        return
    verdict = ratelimit.charge(wanted)
    call.levels.update({level.bucket.policy: level for level in verdict.levels})
    if verdict.admitted:
        return
    if verdict.retry_after is not None:
        headers = {"Retry-After": str(verdict.retry_after)}
        raise Problem("rate_limited", "The budget of this minute is spent.", headers=headers)
    budget = min(bucket.budget for bucket, units in wanted if units > bucket.budget)
    raise _never_fits(call, budget)


def _never_fits(call: Call, budget: int) -> Problem:
    fit = pricing.rows_that_fit(call.tool, budget) if call.tool else None
    context: dict[str, Any] = {} if fit is None else {"rows_that_fit": fit}
    return Problem("rate_limited", "The call costs more than the whole budget of a minute.", retry="never", **context)


def _own_bucket(call: Call) -> Bucket:
    """The key family's, or the person's, whichever session it is (RL-2)."""
    actor, now = call.actor, call.switches
    assert actor is not None and now is not None  # noqa: PT018, S101 - `authenticate` or `open_session` came first
    if actor.key is None:
        return Bucket(policy="person", name=f"person:{actor.caller}", budget=now.api_person_budget)
    return Bucket(policy="key", name=f"key:{actor.caller}", budget=actor.key.budget or now.api_key_budget)


def _network_bucket(call: Call) -> Bucket:
    assert call.actor is not None and call.switches is not None  # noqa: PT018, S101
    return Bucket(policy="network", name=f"network:{call.actor.caller}", budget=call.switches.api_network_budget)


def _token_bucket(call: Call, token: str) -> Bucket:
    assert call.switches is not None  # noqa: S101
    return Bucket(policy="token", name=token, budget=call.switches.api_token_budget)
