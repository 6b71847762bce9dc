"""What the operator has set for the assistant (SPEC 25, 26, TU-4, TU-9), as one immutable value out of the settings table's rows.

Nothing fails open: an unreadable switch is off, an unreadable limit on money, tokens or turns lets as little through as it can, an
addition to the prompt that can't be read (the operator's own rules may stand in it) switches the assistant off, and nothing is deleted
because of a number that can't be read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.api import credentials, setting_rules
from apps.api.setting_rules import Rule

PROMPT_LENGTH = 8_000
MOST_TOKENS = 1_000_000_000
MOST_MONEY = 100_000


def _amount(default: int, minimum: int, maximum: int, text: Promise, *, unreadable: int | None = None) -> Rule:
    return Rule(
        default=default,
        read=setting_rules.whole(minimum, maximum),
        unreadable=default if unreadable is None else unreadable,
        help=text,
        bounds=(minimum, maximum),
    )


def _money(default: str, text: Promise) -> Rule:
    amount = Decimal(default)
    return Rule(
        default=amount.quantize(Decimal("0.0001")),
        read=setting_rules.money(MOST_MONEY),
        unreadable=Decimal(0),
        help=text,
        bounds=(0, MOST_MONEY),
    )


RULES: Mapping[str, Rule] = {
    "agent_enabled": Rule(
        default=True,
        read=setting_rules.flag,
        unreadable=False,
        help=_("People with the permission may use the assistant."),
    ),
    "agent_history_chars": _amount(
        40_000, 1_000, 1_000_000, _("Most characters of one text of a person, and of the history that a model is sent.")
    ),
    "agent_rounds": _amount(8, 1, 100, _("Requests to the model in one turn.")),
    "agent_calls": _amount(16, 0, 1_000, _("Calls of tools in one turn.")),
    "agent_repeats": _amount(3, 1, 100, _("How often one turn may make the very same call.")),
    "agent_turn_seconds": _amount(120, 5, 3_600, _("Seconds after which a turn is ended.")),
    "agent_result_chars": _amount(8_000, 100, 1_000_000, _("Characters of a tool's result that the model gets.")),
    "agent_turn_tokens": _amount(200_000, 0, MOST_TOKENS, _("Tokens of one turn, input and output."), unreadable=0),
    "agent_turn_cost": _money("0.50", _("US dollars of one turn.")),
    "agent_daily_tokens": _amount(2_000_000, 0, MOST_TOKENS, _("Tokens of a person a day."), unreadable=0),
    "agent_daily_cost": _money("5", _("US dollars of a person a day.")),
    "agent_turns_at_once": _amount(2, 1, 100, _("Turns of a person at the same time."), unreadable=1),
    "agent_prompt_addition": Rule(
        default="",
        read=setting_rules.writing(PROMPT_LENGTH),
        unreadable=None,
        help=_("Added to what the model is told of its task."),
    ),
    "agent_purge_deleted_after_days": _amount(
        0, 0, 36_500, _("Days after which a deleted chat is gone for good; 0: never.")
    ),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Options:
    """The settings of this moment. Costs are US dollars."""

    agent_enabled: bool
    agent_history_chars: int
    agent_rounds: int
    agent_calls: int
    agent_repeats: int
    agent_turn_seconds: int
    agent_result_chars: int
    agent_turn_tokens: int
    agent_turn_cost: Decimal
    agent_daily_tokens: int
    agent_daily_cost: Decimal
    agent_turns_at_once: int
    agent_prompt_addition: str
    agent_purge_deleted_after_days: int


@lru_cache(maxsize=8)
def parse(text: str) -> Options:
    """The options of a JSON object of rows. Pure, so the same text gives the same object in every request."""
    found: dict[str, Any] = setting_rules.values(text, RULES)
    if found["agent_prompt_addition"] is None:
        found.update(agent_enabled=False, agent_prompt_addition="")
    return Options(**found)


def current() -> Options:
    """As of now, by one query. Who has read the settings' rows already gives their text to `parse`."""
    return parse(credentials.read(None).settings)
