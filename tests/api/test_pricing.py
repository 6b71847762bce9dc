"""What a call costs (RL-1)."""

from typing import Any

import pytest

from apps.api import Context, Module, pricing
from apps.api.pricing import PriceError
from apps.api.tool import Tool


def handler(input: dict[str, Any], ctx: Context) -> dict[str, Any]:
    return {}


def tool(*, read: bool = False, **declared: Any) -> Tool:
    annotations: Any = {"read_only": True} if read else None
    return Module(key="shop", name="Shop").tool("shop.do_it", input_schema={}, annotations=annotations, **declared)(
        handler
    )


@pytest.mark.parametrize(
    ("rows", "max_items", "units"),
    [
        (0, None, 1),
        (1, None, 1),
        (50, None, 1),
        (51, None, 2),
        (100, None, 2),
        (101, None, 3),
        (1_000, None, 20),
        (1_001, None, 20),
        (1_000_000, None, 20),
        (500, 500, 10),
        (501, 500, 10),
        (5_000, 5_000, 100),
        (60, 20, 1),
    ],
)
def test_a_write_costs_a_unit_for_each_fifty_rows_up_to_its_limit(rows: int, max_items: int | None, units: int) -> None:
    assert pricing.cost(tool(max_items=max_items), {"rows": [1] * rows}) == units


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        ({}, 0),
        ({"a": [1, 2], "b": [1, 2, 3], "c": "long text"}, 3),
        ({"a": {"b": [1] * 9}}, 0),
        ({"a": [[1] * 9]}, 1),
        ([1] * 9, 0),
        ("text", 0),
        (None, 0),
    ],
)
def test_rows_are_counted_in_the_longest_list_at_the_top(value: Any, rows: int) -> None:
    assert pricing.rows(value) == rows


def test_everything_else_costs_one_unit() -> None:
    rows = {"rows": [1] * 500}
    assert pricing.cost(None, rows) == 1
    assert pricing.cost(tool(read=True), rows) == 1
    assert pricing.cost(tool(audience="public"), rows) == 1
    assert pricing.cost(tool(), [1] * 500) == 1
    assert pricing.cost(tool(cost=lambda given: 9), "no object") == 1


@pytest.mark.parametrize("declared", [{}, {"read": True}, {"audience": "public"}, {"audience": "public", "read": True}])
def test_a_declared_cost_prices_every_kind_of_call(declared: dict[str, Any]) -> None:
    assert pricing.cost(tool(cost=lambda given: len(given["terms"]), **declared), {"terms": [1, 2, 3]}) == 3


@pytest.mark.parametrize(("answer", "units"), [(1, 1), (1_000, 1_000), (1_001, 1_000), (10**30, 1_000)])
def test_a_declared_cost_is_cut_to_a_thousand(answer: int, units: int) -> None:
    assert pricing.cost(tool(cost=lambda given: answer), {}) == units


@pytest.mark.parametrize("answer", [0, -1, 1.0, True, False, "1", None, [1], float("nan")], ids=repr)
def test_a_cost_that_is_no_price_is_an_error(answer: Any) -> None:
    with pytest.raises(PriceError):
        pricing.cost(tool(cost=lambda given: answer), {})


def test_the_rule_and_the_rows_that_fit_say_the_same() -> None:
    assert pricing.rule(tool()) == {"units": 1, "rows_per_unit": 50, "declared": False}
    assert pricing.rule(tool(read=True)) == {"units": 1, "rows_per_unit": None, "declared": False}
    assert pricing.rule(tool(cost=lambda given: 1)) == {"units": 1, "rows_per_unit": None, "declared": True}
    assert pricing.rows_that_fit(tool(), 20) == 1_000
    assert pricing.rows_that_fit(tool(read=True), 20) is None
