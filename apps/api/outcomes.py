"""Putting an outcome together: the document of a refusal, and the headers of what was charged."""

from dataclasses import replace
from typing import TypeVar

from apps.api import problems, ratelimit, strict_json
from apps.api.call import Answer, Call, Refusal
from apps.api.problems import Problem

T = TypeVar("T", bound=Answer | Refusal)

# What is told of an error that nobody declared.
FAILED = "The call failed on our side. The request id finds it in the log."


def refusal(call: Call, problem: Problem) -> Refusal:
    body = strict_json.dumps(problems.document(problem, call.entrance.request_id or None))
    return Refusal(problem=problem, body=body, headers={**charged(call), **problem.headers})


def declared(call: Call, problem: Problem) -> Refusal:
    """The handler's own refusal. Where it is stored the same key would only bring it again, and what was confirmed is spent."""
    claim = call.claim
    is_stored = claim is not None and (claim.external or problem.kind.status < 500)
    if problem.retry == "same_key" and call.is_confirmation:
        problem.retry = "never"
    elif problem.retry == "same_key" and is_stored:
        problem.retry = "new_key"
    return refusal(call, problem)


def with_headers(call: Call, outcome: T) -> T:
    """The outcome with the limiter's headers of this call beside its own."""
    return replace(outcome, headers={**charged(call), **outcome.headers})


def charged(call: Call) -> dict[str, str]:
    """The limiter's headers, for every policy that this call was charged to (RL-5)."""
    return ratelimit.headers(tuple(call.levels.values())) if call.levels else {}
