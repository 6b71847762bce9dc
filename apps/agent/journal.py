"""The journal of calls of models (TU-7): one row for each request to a provider, however it ended, and what a person spent."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.db.models import Sum
from django.utils import timezone

from apps.agent import prices
from apps.agent.models import ModelCall
from apps.agent.providers.protocol import Ask, Chosen, Line, Proposed, Usage

STOPPED = "stopped"

# Of a text that nobody counted; fewer than in most languages, so that the estimate is not too low.
CHARS_A_TOKEN = 3
# What a column holds, whatever a provider says.
MOST_TOKENS, MOST_COST = 2_147_483_647, Decimal("999999.999999")


@dataclass(frozen=True, kw_only=True)
class Where:
    """The request's place: whose turn, which attempt at it, which round of it."""

    person_id: str
    turn: UUID | None = None
    attempt: int = 1
    round: int = 1


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What was asked and what came, for a provider that did not say what it counted."""

    ask: Ask
    text: str = ""

    def estimate(self) -> Usage:
        """What a provider would charge for it, roughly."""
        sent = len(self.ask.instructions) + sum(_length(line) for line in self.ask.history)
        sent += sum(len(tool.name) + len(tool.description) + len(str(tool.schema)) for tool in self.ask.tools)
        return Usage(input_tokens=_tokens(sent), output_tokens=_tokens(len(self.text)), is_counted=False)


def note(
    chosen: Chosen,
    where: Where,
    *,
    started_at: datetime,
    usage: Usage | None = None,
    asked: Asked | None = None,
    code: str = "",
) -> ModelCall:
    """Write the row of a request that ended now; its `cost` and tokens are what the limits count.

    `code`: empty for a whole answer, a Failure's, or STOPPED. Without a counted `usage` the tokens are estimated from what was `asked`,
    unless the provider did not begin to answer.
    """
    counted = _bounded(_counted(usage, asked, code))
    cost = prices.cost(chosen, counted)
    return ModelCall.objects.create(
        user_id=where.person_id,
        turn_id=where.turn,
        attempt=where.attempt,
        round=where.round,
        endpoint_id=chosen.endpoint_uuid,
        provider=chosen.model.provider,
        model=chosen.model.model,
        code=code,
        input_tokens=counted.input_tokens,
        output_tokens=counted.output_tokens,
        cache_read_tokens=counted.cache_read_tokens,
        cache_write_tokens=counted.cache_write_tokens,
        is_estimate=not counted.is_counted,
        cost=None if cost is None else min(cost, MOST_COST),
        started_at=started_at,
        ended_at=timezone.now(),
    )


# Failures of a request that the provider did not begin to answer, and does not charge.
NOT_SENT = frozenset(
    {
        "provider_unauthorized",
        "provider_rate_limited",
        "provider_overloaded",
        "provider_refused",
        "provider_unreachable",
        "context_overflow",
        "endpoint_forbidden",
        "key_unreadable",
        "no_model",
    }
)


def _bounded(usage: Usage) -> Usage:
    """A request must not go unjournalled because its provider counted oddly."""
    return replace(
        usage,
        input_tokens=_whole(usage.input_tokens),
        output_tokens=_whole(usage.output_tokens),
        cache_read_tokens=_whole(usage.cache_read_tokens),
        cache_write_tokens=_whole(usage.cache_write_tokens),
    )


def _whole(tokens: int) -> int:
    return max(0, min(tokens, MOST_TOKENS))


def _counted(usage: Usage | None, asked: Asked | None, code: str) -> Usage:
    if usage is not None and usage.is_counted:
        return usage
    is_charged = usage is not None or code not in NOT_SENT or (asked is not None and asked.text != "")
    return asked.estimate() if asked is not None and is_charged else Usage()


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Tokens, input and output, and US dollars."""

    tokens: int
    cost: Decimal


def spent_since(person_id: str, since: datetime) -> Spent:
    """By all requests of the person that began since then. A request without a known price costs nothing here: its tokens count."""
    calls = ModelCall.objects.filter(user_id=person_id, started_at__gte=since)
    # Two sums: of two counts that fill their columns the database itself makes none.
    found = calls.aggregate(input=Sum("input_tokens"), output=Sum("output_tokens"), cost=Sum("cost"))
    return Spent(tokens=(found["input"] or 0) + (found["output"] or 0), cost=found["cost"] or Decimal(0))


def _length(line: Line) -> int:
    calls = line.calls if isinstance(line, Proposed) else ()
    return len(line.text) + sum(len(call.name) + len(call.arguments) for call in calls)


def _tokens(chars: int) -> int:
    return -(-chars // CHARS_A_TOKEN)
