"""What the document says in words: how a call is made, what is held, and for how long things are kept (ID-4)."""

from typing import NamedTuple

from apps.api import doorway
from apps.api.call import Audience
from apps.api.switches import Switches


class Times(NamedTuple):
    """The operator's periods and budgets that a client has to know."""

    idempotency_hours: int
    code_minutes: int
    approval_hours: int
    start_hours: int
    confirmation_days: int
    approval_input_days: int
    key_budget: int
    network_budget: int
    token_budget: int

    @classmethod
    def of(cls, now: Switches) -> "Times":
        return cls(
            idempotency_hours=now.idempotency_retention,
            code_minutes=now.api_code_minutes,
            approval_hours=now.api_approval_hours,
            start_hours=now.api_start_hours,
            confirmation_days=now.confirmation_retention,
            approval_input_days=now.approval_input_retention,
            key_budget=now.api_key_budget,
            network_budget=now.api_network_budget,
            token_budget=now.api_token_budget,
        )


def text(audience: Audience, times: Times) -> str:
    """The description of the document, in Markdown."""
    parts = (_CALLS, _WRITES, *(_KEYS if audience == "admin" else _VISITORS))
    limits = {"megabytes": doorway.MAX_BODY // 1_000_000, **times._asdict()}
    return "\n\n".join(part.strip() for part in parts).format(**limits)


_CALLS = """
A call is a POST of a JSON object to the tool's own path. Paths work with and without a last slash. Every answer names
its request in `X-Request-ID`: yours, if you send one, which finds the call in the operator's log.

**Input.** At most {megabytes} MB of strict JSON in UTF-8: no member twice, no NaN, integers of 64 bits. Unknown fields are
refused.

**Refusals.** Every answer of 400 and above is `application/problem+json`. Decide by `code`; `retry` says whether and
how to call again.
"""
_WRITES = """
**Writes.** `dry_run: true` answers a preview and changes nothing. A dangerous call is held: it answers
`confirmation_required` with a code that is good once and for {code_minutes} minutes, for the same input, while the
previewed values are the same. A code stays listed for {confirmation_days} days after its end.

**Idempotency.** A write with an `Idempotency-Key` (a header, or the field `idempotency_key`) runs once, whatever
breaks in between; a repeat is answered with the stored outcome, byte for byte, and marked with the header
`Idempotent-Replayed: true`. An outcome is kept for {idempotency_hours} hours from its end.
"""
_KEYS = (
    """
**Approvals.** The writes of a key that requires approval answer `pending_approval`: people decide within
{approval_hours} hours, and what they approve starts within {start_hours} hours. `GET /api/v1/approvals/<approval_id>`
says what became of it, `DELETE` takes it back. The input and the preview are cleared {approval_input_days} days after
the end.

**Budget.** In any 60 seconds {key_budget} units, or what the key has of its own; `RateLimit` says what is left. A
call costs at least 1 unit, a refused one too, but for those that end before your key is known.
""",
)
_VISITORS = (
    """
**Client tokens.** A field that a tool names takes a token of your own choice (16 to 128 characters): codes and
idempotency keys belong to it.

**Budget.** In any 60 seconds {network_budget} units of your network, and {token_budget} of a client token. A call
costs at least 1 unit, a refused one too.
""",
)
