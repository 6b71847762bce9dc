"""What the tools take, without a call: the schema and the types decide alike, on any database."""

from typing import Any

import pytest
from pydantic import ValidationError

from apps.api import executor, schemas
from apps.api.tool import Tool
from apps.catalogue import tools

pytestmark = pytest.mark.sqlite

NEW = {"sku": "A", "name": "Lamp", "category": "lamps", "price": "1.00"}


def _is_taken(tool: Tool, value: dict[str, Any]) -> bool:
    if schemas.faults(tool.validator, value):
        return False
    try:
        tool.form.typed(value)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("price", ["0", "0.5", "19.90", "9999999999.99"])
def test_a_price_is_a_decimal_string(price: str) -> None:
    assert _is_taken(tools.update_prices, {"changes": [{"sku": "A", "price": price}]})


@pytest.mark.parametrize(
    "price", ["-1", "1.234", "1e3", "1,50", "", " 1", "1\n", "NaN", "٣", "12345678901", 19.9, 19, True, None]
)
def test_nothing_else_is_a_price(price: Any) -> None:
    assert not _is_taken(tools.update_prices, {"changes": [{"sku": "A", "price": price}]})
    assert not _is_taken(tools.list_products, {"max_price": price})


@pytest.mark.parametrize("sku", ["a", "LMP-0001", "a.b_c-d", "9" * 40])
def test_a_sku_is_plain_text(sku: str) -> None:
    assert _is_taken(tools.get_product, {"sku": sku})


@pytest.mark.parametrize("sku", ["", "a b", "-a", "a" * 41, "ä", "a/b", "a\n", None, 7])
def test_nothing_else_is_a_sku(sku: Any) -> None:
    assert not _is_taken(tools.get_product, {"sku": sku})


@pytest.mark.parametrize(("limit", "taken"), [(1, True), (100, True), *((n, False) for n in (0, 101, 1.5, "5", True))])
def test_a_limit_goes_from_1_to_100(limit: Any, taken: bool) -> None:
    assert _is_taken(tools.list_products, {"limit": limit}) is taken
    assert _is_taken(tools.search_products, {"limit": limit}) is taken


@pytest.mark.parametrize("delta", [1.5, "1", None, 1_000_000_001, -1_000_000_001])
def test_a_delta_is_a_whole_number_in_bounds(delta: Any) -> None:
    assert not _is_taken(tools.adjust_stock, {"changes": [{"sku": "A", "delta": delta}]})


@pytest.mark.parametrize("tool", [tools.update_prices, tools.adjust_stock])
def test_changes_are_a_list_of_closed_rows_that_is_not_empty(tool: Tool) -> None:
    row = {"sku": "A", "price": "1.00"} if tool is tools.update_prices else {"sku": "A", "delta": 1}
    assert _is_taken(tool, {"changes": [row]})
    odd: list[Any] = [[], [{**row, "name": "x"}], [{"sku": "A"}], {}, None]
    for changes in odd:
        assert not _is_taken(tool, {"changes": changes})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "  "),
        ("name", "x" * 201),
        ("currency", "eur"),
        ("currency", None),
        ("stock", -1),
        ("stock", 1_000_000_001),
        ("description", "x" * 5_001),
        ("color", "red"),
    ],
)
def test_a_new_product_needs_sane_values(field: str, value: Any) -> None:
    assert _is_taken(tools.create_product, NEW)
    assert not _is_taken(tools.create_product, {**NEW, field: value})


@pytest.mark.parametrize("field", NEW)
def test_a_new_product_needs_its_four_fields(field: str) -> None:
    assert not _is_taken(tools.create_product, {name: value for name, value in NEW.items() if name != field})


def test_amounts_have_two_places_whatever_was_sent() -> None:
    typed = tools.update_prices.form.typed({"changes": [{"sku": "A", "price": "5"}]})
    assert str(typed.changes[0].price) == "5.00"


def test_every_field_says_what_it_is() -> None:
    for tool in tools.module.tools:
        for name, rule in executor.input_schema(tool)["properties"].items():
            assert rule["description"], f"{tool.name} {name}"
