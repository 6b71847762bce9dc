"""The assistant's settings as they are read: nothing that can't be read lets more through."""

import json
from decimal import Decimal
from typing import Any

import pytest

from apps.agent import options
from apps.api.models import Setting


def read(**rows: Any) -> options.Options:
    return options.parse(json.dumps(rows))


def test_without_rows_every_option_has_its_default() -> None:
    found = read()
    assert (found.agent_enabled, found.agent_history_chars, found.agent_rounds, found.agent_calls) == (
        True,
        40_000,
        8,
        16,
    )
    assert (found.agent_repeats, found.agent_turn_seconds, found.agent_result_chars) == (3, 120, 8_000)
    assert (found.agent_turn_cost, found.agent_daily_cost) == (Decimal("0.5"), Decimal(5))
    assert found.agent_purge_deleted_after_days == 0


def test_a_stored_value_counts() -> None:
    found = read(
        agent_enabled=False, agent_rounds=3, agent_turn_cost="0.0125", agent_prompt_addition="Answer in German."
    )
    assert (found.agent_enabled, found.agent_rounds) == (False, 3)
    assert (found.agent_turn_cost, found.agent_prompt_addition) == (Decimal("0.0125"), "Answer in German.")


@pytest.mark.parametrize("value", [None, 1, "true", [], {}])
def test_a_switch_that_cannot_be_read_is_off(value: Any) -> None:
    assert read(agent_enabled=value).agent_enabled is False


@pytest.mark.parametrize(
    "value", [None, 0.5, True, "-1", "0.00001", "NaN", "Infinity", "1e9", "100001", "much", [], {}]
)
@pytest.mark.parametrize("name", ["agent_turn_cost", "agent_daily_cost"])
def test_money_that_cannot_be_read_is_none(name: str, value: Any) -> None:
    assert getattr(read(**{name: value}), name) == 0


@pytest.mark.parametrize("value", [None, -1, 0.5, True, "9", 10**30])
def test_a_limit_of_tokens_or_turns_that_cannot_be_read_is_the_strictest(value: Any) -> None:
    found = read(agent_turn_tokens=value, agent_daily_tokens=value, agent_turns_at_once=value)
    assert (found.agent_turn_tokens, found.agent_daily_tokens, found.agent_turns_at_once) == (0, 0, 1)


@pytest.mark.parametrize("value", [None, 1, ["x"], "x" * 8_001, "a\x00b"])
def test_an_addition_to_the_prompt_that_cannot_be_read_switches_the_assistant_off(value: Any) -> None:
    found = read(agent_prompt_addition=value)
    assert (found.agent_enabled, found.agent_prompt_addition) == (False, "")


@pytest.mark.parametrize("value", [None, -1, "30", True])
def test_a_time_that_cannot_be_read_deletes_nothing(value: Any) -> None:
    assert read(agent_purge_deleted_after_days=value).agent_purge_deleted_after_days == 0


@pytest.mark.parametrize("text", ["", "[]", "null", "{"])
def test_rows_that_cannot_be_read_at_all_switch_the_assistant_off(text: str) -> None:
    found = options.parse(text)
    assert (found.agent_enabled, found.agent_turn_tokens, found.agent_daily_cost) == (False, 0, Decimal(0))


@pytest.mark.sqlite
@pytest.mark.django_db
def test_the_current_options_are_read_by_one_query(django_assert_num_queries: Any) -> None:
    options.current()  # a new connection prepares the statement first
    Setting.objects.create(name="agent_daily_cost", value="1.2500")
    with django_assert_num_queries(1):
        assert options.current().agent_daily_cost == Decimal("1.25")
