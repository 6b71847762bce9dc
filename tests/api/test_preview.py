"""The fixed shape of a preview and the fingerprint of what a write would touch (MT-9)."""

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.api import fingerprint, preview, row


def test_a_preview_has_its_four_members() -> None:
    shown = preview("Change 1 price.", [row("AB-1", "price", before="1", after="2", note="+100 %")], totals={"rows": 1})
    assert shown == {
        "summary": "Change 1 price.",
        "rows": [{"label": "AB-1", "field": "price", "before": "1", "after": "2", "note": "+100 %"}],
        "more": 0,
        "totals": {"rows": 1},
    }
    assert preview("Nothing.") == {"summary": "Nothing.", "rows": [], "more": 0, "totals": {}}


@pytest.mark.parametrize(("rows", "listed", "more"), [(0, 0, 0), (50, 50, 0), (51, 50, 1), (500, 50, 450)])
def test_a_preview_lists_fifty_rows_and_counts_the_others(rows: int, listed: int, more: int) -> None:
    shown = preview("Many.", (row(str(number), "price") for number in range(rows)))
    assert (len(shown["rows"]), shown["more"]) == (listed, more)


def test_a_fingerprint_is_a_short_text() -> None:
    assert len(fingerprint(["a"], {"a": 1}).encode()) == 64


DIFFERENT: list[tuple[list[Any], dict[Any, Any]]] = [
    (["a", "b"], {"a": 1, "b": 2}),
    (["b", "a"], {"a": 1, "b": 2}),
    (["a", "b"], {"a": 2, "b": 1}),
    (["a", "b"], {"a": 1}),
    (["a", "b"], {"b": 1}),
    (["a", "b"], {}),
    (["a"], {}),
    ([], {}),
    (["a", "a"], {"a": 1}),
    (["a"], {"a": "absent"}),
    (["a"], {"a": None}),
    (["a"], {"a": {"is": "absent"}}),
    (["a"], {"a": ["1"]}),
    (["a"], {"a": "1"}),
    (["a"], {"a": 1}),
    (["a"], {"a": True}),
    (["ab"], {"ab": 1}),
    ([("a", "b")], {}),
]


def test_each_difference_in_order_presence_or_value_changes_the_fingerprint() -> None:
    assert len({fingerprint(names, values) for names, values in DIFFERENT}) == len(DIFFERENT)


def test_what_the_input_does_not_name_does_not_count() -> None:
    assert fingerprint(["a"], {"a": 1, "b": 2}) == fingerprint(["a"], {"b": 3, "a": 1})


def test_values_count_by_their_json_form() -> None:
    uuid = UUID(int=1)
    assert fingerprint([uuid], {uuid: Decimal("1.50")}) == fingerprint([uuid], {uuid: "1.50"})


@given(st.lists(st.text(max_size=3), max_size=5, unique=True), st.lists(st.integers(0, 2), max_size=5))
def test_a_row_that_disappears_is_seen_wherever_it_stands(names: list[str], values: list[int]) -> None:
    found = dict(zip(names, values, strict=False))
    for name in found:
        without = {key: value for key, value in found.items() if key != name}
        assert fingerprint(names, found) != fingerprint(names, without)
