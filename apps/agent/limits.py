"""What one turn and one person may use (TU-4): the installation's settings, and what an operator set for the person.

Each limit has a code of its own, so that the notice in the chat says which it was.
"""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.utils import timezone

from apps.agent import calls, journal
from apps.agent.models import AgentSetting, Message, Turn
from apps.agent.options import Options

# However much a provider sends: a table's row and a page stay usable.
ANSWER_CHARS = 200_000
# What a call counts beside its words: it has a result, and a line of its own.
CALL_CHARS = 200


class Reached(Exception):
    """A limit ends the turn. `code` is that of the notice, `limit` what it names."""

    def __init__(self, code: str, limit: object) -> None:
        super().__init__(code)
        self.code, self.limit = code, limit


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Those of one person's turns at this moment. Costs are US dollars."""

    rounds: int
    calls: int
    repeats: int
    seconds: int
    result_chars: int
    history_chars: int
    turn_tokens: int
    turn_cost: Decimal
    daily_tokens: int
    daily_cost: Decimal
    at_once: int


def of(person: Any, options: Options) -> Limits:
    """The person's own where an operator set them, by one query."""
    own = AgentSetting.objects.filter(user=person).first() or AgentSetting()
    return Limits(
        rounds=options.agent_rounds,
        calls=options.agent_calls,
        repeats=options.agent_repeats,
        seconds=options.agent_turn_seconds,
        result_chars=options.agent_result_chars,
        history_chars=options.agent_history_chars,
        turn_tokens=options.agent_turn_tokens,
        turn_cost=options.agent_turn_cost,
        daily_tokens=_or(own.daily_tokens, options.agent_daily_tokens),
        daily_cost=_or(own.daily_cost, options.agent_daily_cost),
        at_once=_or(own.turns_at_once, options.agent_turns_at_once),
    )


def _or(own: Any, common: Any) -> Any:
    """0 is a limit too."""
    return common if own is None else own


def check_round(limits: Limits, turn: Turn, *, person: Any) -> None:
    """Before a request to the model: the turn's rounds, and what it and the person's day have used. Raises Reached."""
    if turn.rounds >= limits.rounds:
        raise Reached("limit_rounds", limits.rounds)
    if turn.tokens >= limits.turn_tokens:
        raise Reached("limit_turn_tokens", limits.turn_tokens)
    if turn.cost >= limits.turn_cost:
        raise Reached("limit_turn_cost", limits.turn_cost)
    spent = journal.spent_since(str(person), _midnight(timezone.now()))
    if spent.tokens >= limits.daily_tokens:
        raise Reached("limit_daily_tokens", limits.daily_tokens)
    if spent.cost >= limits.daily_cost:
        raise Reached("limit_daily_cost", limits.daily_cost)


def _midnight(now: datetime) -> datetime:
    """A person's day is that of the installation's time zone."""
    return timezone.localtime(now).replace(hour=0, minute=0, second=0, microsecond=0)


def calls_so_far(turn: Turn) -> "Counter[str]":
    """How often each call was made in the turn and in those that it follows."""
    turns: list[UUID] = [turn.pk]
    before = turn.follows
    while before is not None and before.pk not in turns:
        turns.append(before.pk)
        before = before.follows
    stored = Message.objects.filter(conversation=turn.conversation_id, turn__in=turns, role=Message.Role.ASSISTANT)
    made = (call for found in stored.values_list("tool_calls", flat=True) for call in found)
    return Counter(calls.Asked(id="", alias=call["name"], arguments=call["arguments"]).key for call in made)
