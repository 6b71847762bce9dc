"""Importing products: all of a list or none of it, previewed, confirmed, recorded, and told as it goes."""

from typing import Any

import pytest

from apps.api import lifesigns
from apps.catalogue.models import Change, Product
from tests.api.factories import Machine
from tests.catalogue import queries
from tests.catalogue.factories import make_category, make_product
from tests.catalogue.prompts import confirmed, prompt

pytestmark = pytest.mark.sqlite

TOOL = "import_products"


def listed(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "sku": f"IMP-{number:04}",
        "name": f"Lamp {number}",
        "category": "lamps",
        "price": "19.90",
        "stock": number,
        **fields,
    }


def test_new_products_are_created_and_known_ones_get_the_values_of_the_list(writer: Machine) -> None:
    known = make_product(sku="IMP-0001", price="10.00", stock=1, name="Lamp 1")
    same = make_product(sku="IMP-0003", price="19.90", stock=3, name="Lamp 3")
    body = {"rows": [listed(2), listed(1), listed(3, description=same.description, currency=same.currency)]}
    shown = prompt(writer, TOOL, body)["preview"]
    assert shown["totals"] == {"created": 1, "updated": 1, "unchanged": 1}
    answer = confirmed(writer, TOOL, body).json()
    assert answer == {"imported": 3, "created": 1, "updated": 1, "unchanged": 1}
    known.refresh_from_db()
    assert (str(known.price), Product.objects.get(sku="IMP-0002").currency) == ("19.90", "EUR")
    assert sorted(Change.objects.values_list("sku", "field").distinct()) == [
        ("IMP-0001", "price"),
        ("IMP-0002", "product"),
    ]


def test_a_changed_name_is_found_by_search_and_noted_as_the_products(writer: Machine) -> None:
    make_product(sku="IMP-0001", name="Old", price="19.90", stock=1)
    confirmed(writer, TOOL, {"rows": [listed(1, name="Reed light")]})
    assert Product.objects.matching("reed").count() == 1
    assert ("product", "Old", "Reed light") in Change.objects.values_list("field", "before", "after")


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([listed(1), listed(1)], "duplicate_sku"),
        ([listed(1, category="nowhere")], "unknown_category"),
        ([listed(1, price="1.999")], "validation_failed"),
        ([], "validation_failed"),
        ([listed(number) for number in range(2_001)], "too_many_items"),
    ],
)
def test_a_bad_list_is_refused_whole(writer: Machine, rows: Any, code: str) -> None:
    make_category()
    assert writer.call(f"catalogue.{TOOL}", {"rows": rows}).json()["code"] == code
    assert Product.objects.filter(sku__startswith="IMP").count() == 0


def test_a_product_that_changed_since_the_preview_asks_anew(writer: Machine) -> None:
    known = make_product(sku="IMP-0001", price="10.00")
    body = {"rows": [listed(1)]}
    code = prompt(writer, TOOL, body)["confirm_token"]
    Product.objects.filter(pk=known.pk).update(price="11.00")
    again = writer.call(f"catalogue.{TOOL}", {**body, "confirm_token": code}).json()
    assert (again["status"], again["reason"]) == ("confirmation_required", "changed")


def test_a_product_that_appeared_since_the_preview_asks_anew(writer: Machine) -> None:
    make_category()
    body = {"rows": [listed(1)]}
    code = prompt(writer, TOOL, body)["confirm_token"]
    make_product(sku="IMP-0001")
    assert writer.call(f"catalogue.{TOOL}", {**body, "confirm_token": code}).json()["reason"] == "changed"


def test_two_thousand_rows_take_as_many_queries_as_parts_not_as_rows(writer: Machine) -> None:
    make_category()
    for number in (100, 2_000):
        body = {"rows": [listed(each, name=f"{number} {each}") for each in range(number)]}
        with queries.captured() as found:
            assert confirmed(writer, TOOL, body).json()["imported"] == number
        assert len(found) < 60 + 12 * (number // 100)


def test_what_it_tells_as_it_goes_is_heard_by_nobody_in_an_ordinary_call(
    writer: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_category()
    heard: list[Any] = []
    monkeypatch.setattr(lifesigns, "report", lambda work, partial: heard.append(partial))
    confirmed(writer, TOOL, {"rows": [listed(1)]})
    assert heard == []
