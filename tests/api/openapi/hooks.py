"""What schemathesis does besides its own checks. It runs in an environment of its own: nothing of ours is imported here.

Each request comes from a network of its own, since failed authentications of one network are bounded. A schema can't say every rule:
a call that fits the schema may be refused with 422 for the rules that stand here, and for no other.
"""

import itertools
import re
from typing import Any

import schemathesis
from requests.adapters import HTTPAdapter

_numbers = itertools.count(1)

CODES = {"idempotency_key_reused", "duplicate_sku", "several_suppliers"}
RULES = re.compile(
    r"The header and the field differ\.|A preview takes no code\.|This is no (next_)?cursor of this (tool|list)\."
    r"|Without a client token nobody can tell whose key this is\.|This field is required\."
    r"|.*This is no e-mail address\.|String should have at least 1 character"
)


_send = HTTPAdapter.send


def _send_from_its_own_network(self: HTTPAdapter, request: Any, *args: Any, **kwargs: Any) -> Any:
    """Below schemathesis: a header that it knew of would be a part of its cases."""
    number = next(_numbers)
    request.headers["X-Forwarded-For"] = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return _send(self, request, *args, **kwargs)


HTTPAdapter.send = _send_from_its_own_network


@schemathesis.check
def refused_for_a_rule_that_no_schema_says(ctx: Any, response: Any, case: Any) -> None:
    meta = case.meta
    if response.status_code != 422 or meta is None or meta.generation.mode.value != "positive":
        return
    problem = response.json()
    said = [error["message"] for error in problem.get("errors", ())] or [problem["detail"]]
    known = problem["code"] in CODES or all(RULES.fullmatch(text) for text in said)
    assert known, f"a call that fits the schema was refused: {said}"


@schemathesis.check
def every_refusal_is_a_problem(ctx: Any, response: Any, case: Any) -> None:
    if response.status_code >= 400:
        problem = response.json()
        assert problem["status"] == response.status_code
        # A stored refusal is repeated byte for byte: its body names the first call.
        is_replay = "idempotent-replayed" in response.headers
        assert is_replay or problem["request_id"] == response.headers["x-request-id"][0]
