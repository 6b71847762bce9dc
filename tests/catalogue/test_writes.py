"""What a key changes: all of a call or nothing, with a history row for each product and one entry for the call."""

from decimal import Decimal
from typing import Any

import pytest
from django.db import connection

from apps.activity.models import Entry
from apps.catalogue.models import Change, Product
from tests.api import factories
from tests.api.factories import Machine
from tests.api.person import answer, make_person, refusal
from tests.catalogue import queries
from tests.catalogue.factories import make_category, make_product, make_products
from tests.catalogue.prompts import confirmed, prompt

pytestmark = pytest.mark.sqlite

NEW = {"sku": "NEW-1", "name": "Reed lamp", "category": "lamps", "price": "49.90", "currency": "CHF", "stock": 4}


def _history() -> list[tuple[str, str, str, str]]:
    return list(Change.objects.order_by("pk").values_list("sku", "field", "before", "after"))


def _prices() -> dict[str, str]:
    return {sku: str(price) for sku, price in Product.objects.values_list("sku", "price")}


def _stocks() -> dict[str, int]:
    return dict(Product.objects.values_list("sku", "stock"))


# --- Prices -----------------------------------------------------------------------------------------------------------


def test_prices_are_set_and_recorded(writer: Machine) -> None:
    make_product(sku="A", price="10.00")
    make_product(sku="B", price="20.00", currency="CHF")
    changes = [{"sku": "B", "price": "21"}, {"sku": "A", "price": "9.5"}]
    answer = writer.call("catalogue.update_prices", {"changes": changes, "reason": "Spring"})
    assert answer.json() == {
        "updated": 2,
        "changes": [
            {"sku": "B", "before": "20.00", "after": "21.00", "currency": "CHF"},
            {"sku": "A", "before": "10.00", "after": "9.50", "currency": "EUR"},
        ],
    }
    assert _prices() == {"A": "9.50", "B": "21.00"}
    assert _history() == [("B", "price", "20.00", "21.00"), ("A", "price", "10.00", "9.50")]
    assert set(Change.objects.values_list("reason", "request_id")) == {("Spring", answer.headers["X-Request-ID"])}


def test_a_call_leaves_one_entry_of_the_module_with_counts(writer: Machine) -> None:
    changes = [{"sku": product.sku, "price": "19.00"} for product in make_products(3)]
    writer.call("catalogue.update_prices", {"changes": changes})
    entry = Entry.objects.get(module="catalogue", action="catalogue.prices_updated")
    assert entry.metadata["products"] == 3


def test_the_same_price_again_is_recorded_again(writer: Machine) -> None:
    changed_at = make_product(sku="A", price="10.00").updated_at
    for _ in range(2):
        writer.call("catalogue.update_prices", {"changes": [{"sku": "A", "price": "10.00"}]})
    assert _history() == [("A", "price", "10.00", "10.00")] * 2
    assert Product.objects.get().updated_at > changed_at


def test_the_extremes_of_a_price_are_kept_exactly(writer: Machine) -> None:
    make_product(sku="A")
    for price in ("0", "0.01", "9999999999.99"):
        confirmed(writer, "update_prices", {"changes": [{"sku": "A", "price": price}]})
        assert Product.objects.get().price == Decimal(price)


# --- Stock ------------------------------------------------------------------------------------------------------------


def test_stock_is_adjusted_and_recorded(writer: Machine) -> None:
    make_product(sku="A", stock=10)
    make_product(sku="B", stock=0)
    changes = [{"sku": "A", "delta": -10}, {"sku": "B", "delta": 5}]
    answer = writer.call("catalogue.adjust_stock", {"changes": changes})
    assert answer.json() == {
        "adjusted": 2,
        "changes": [{"sku": "A", "before": 10, "after": 0}, {"sku": "B", "before": 0, "after": 5}],
    }
    assert _stocks() == {"A": 0, "B": 5}
    assert _history() == [("A", "stock", "10", "0"), ("B", "stock", "0", "5")]
    assert Entry.objects.filter(action="catalogue.stock_adjusted").count() == 1


def test_stock_below_zero_is_refused_whole(writer: Machine) -> None:
    make_product(sku="A", stock=10)
    make_product(sku="B", stock=1)
    changes = [{"sku": "A", "delta": 1}, {"sku": "B", "delta": -2}]
    answer = writer.call("catalogue.adjust_stock", {"changes": changes})
    assert (answer.status_code, answer.json()["code"], answer.json()["skus"]) == (409, "stock_below_zero", ["B"])
    assert _stocks() == {"A": 10, "B": 1}
    assert not Change.objects.exists()


# --- Both -------------------------------------------------------------------------------------------------------------

WRITES = [("update_prices", {"price": "5.00"}), ("adjust_stock", {"delta": 1})]


@pytest.mark.parametrize(("tool", "change"), WRITES)
def test_unknown_skus_are_named_and_nothing_is_changed(writer: Machine, tool: str, change: dict[str, Any]) -> None:
    make_product(sku="A")
    unknown = [f"X-{number}" for number in range(25)]
    changes = [{"sku": sku, **change} for sku in ["A", *unknown]]
    for control in ({}, {"dry_run": True}):
        answer = writer.call(f"catalogue.{tool}", {"changes": changes, **control})
        assert (answer.status_code, answer.json()["code"]) == (404, "unknown_sku")
        assert answer.json()["skus"] == unknown[:20]
        assert answer.json()["detail"].endswith("and 5 more.")
    assert not Change.objects.exists()


@pytest.mark.parametrize(("tool", "change"), WRITES)
def test_a_sku_named_twice_is_refused(writer: Machine, tool: str, change: dict[str, Any]) -> None:
    make_product(sku="A")
    answer = writer.call(f"catalogue.{tool}", {"changes": [{"sku": "A", **change}] * 2})
    assert (answer.status_code, answer.json()["code"], answer.json()["skus"]) == (422, "duplicate_sku", ["A"])


@pytest.mark.parametrize(("tool", "change"), WRITES)
def test_a_call_holds_at_most_500_changes(writer: Machine, tool: str, change: dict[str, Any]) -> None:
    changes = [{"sku": f"X-{index}", **change} for index in range(501)]
    answer = writer.call(f"catalogue.{tool}", {"changes": changes})
    assert (answer.status_code, answer.json()["code"]) == (422, "too_many_items")


def _statements(writer: Machine, tool: str, body: dict[str, Any]) -> int:
    with queries.captured() as statements:
        assert "changes" in writer.call(f"catalogue.{tool}", body).json()
    return len(statements)


def test_500_changes_of_stock_take_no_query_for_a_row(writer: Machine) -> None:
    skus = [product.sku for product in make_products(500)]
    counts = [
        _statements(writer, "adjust_stock", {"changes": [{"sku": sku, "delta": 1} for sku in some]})
        for some in (skus[:1], skus)
    ]
    # SQLite takes about a thousand values a statement, so there Django splits the bulk ones.
    assert counts[0] == 3
    assert counts[1] == 3 if connection.vendor == "postgresql" else counts[1] <= 12


def test_500_prices_take_no_query_for_a_row(writer: Machine) -> None:
    skus = [product.sku for product in make_products(500)]
    small = {"changes": [{"sku": skus[0], "price": "19.00"}]}
    large = {"changes": [{"sku": sku, "price": "19.00"} for sku in skus]}
    assert _statements(writer, "update_prices", small) == 4
    with queries.captured() as asking:
        code = prompt(writer, "update_prices", large)["confirm_token"]
    # One for what would change, by which it is judged or compared, and three to change it.
    assert len(asking) == 1
    taken = _statements(writer, "update_prices", {**large, "confirm_token": code})
    assert taken == 4 if connection.vendor == "postgresql" else taken <= 13


def test_a_key_that_reads_changes_nothing(reader: Machine) -> None:
    for tool in ("create_product", "update_prices", "adjust_stock", "delete_products", "notify_supplier"):
        assert reader.call(f"catalogue.{tool}").json()["code"] == "forbidden"


# --- Previews ---------------------------------------------------------------------------------------------------------


def _preview(machine: Machine, tool: str, **input: Any) -> dict[str, Any]:
    answer = machine.call(f"catalogue.{tool}", {**input, "dry_run": True})
    assert answer.json()["status"] == "preview", answer.content
    assert not Change.objects.exists()
    shown: dict[str, Any] = answer.json()["preview"]
    return shown


def test_a_preview_of_prices_shows_before_after_and_percent(writer: Machine) -> None:
    for sku, price in (("A", "10.00"), ("B", "10.00"), ("C", "0.00"), ("D", "5.00")):
        make_product(sku=sku, name="Lamp", price=price)
    changes = [{"sku": sku, "price": price} for sku, price in zip("ABCD", ["11", "7.5", "1", "5"], strict=True)]
    shown = _preview(writer, "update_prices", changes=changes, reason="Spring sale")
    assert shown["summary"] == "Set 4 prices: Spring sale"
    assert shown["rows"][0] == {
        "label": "A Lamp",
        "field": "price",
        "before": "10.00 EUR",
        "after": "11.00 EUR",
        "note": "+10.0%",
    }
    assert [row["note"] for row in shown["rows"][1:]] == ["-25.0%", "was free", "no change"]
    assert shown["totals"] == {"products": 4, "raised": 2, "lowered": 1}
    assert _prices()["A"] == "10.00"


def test_a_preview_of_stock_shows_before_and_after(writer: Machine) -> None:
    make_product(sku="A", name="Lamp", stock=10)
    shown = _preview(writer, "adjust_stock", changes=[{"sku": "A", "delta": -4}])
    assert shown["summary"] == "Adjust the stock of 1 product."
    assert shown["rows"] == [{"label": "A Lamp", "field": "stock", "before": 10, "after": 6, "note": "-4"}]
    assert _stocks() == {"A": 10}


def test_a_preview_refuses_what_the_run_would_refuse(writer: Machine) -> None:
    make_product(sku="A", stock=1)
    body = {"changes": [{"sku": "A", "delta": -2}], "dry_run": True}
    assert writer.call("catalogue.adjust_stock", body).json()["code"] == "stock_below_zero"


@pytest.mark.parametrize(
    ("tool", "change", "field"),
    [("update_prices", {"price": "25.00"}, "price"), ("adjust_stock", {"delta": -3}, "stock")],
)
def test_a_run_does_what_its_preview_showed(writer: Machine, tool: str, change: dict[str, Any], field: str) -> None:
    changes = [{"sku": product.sku, **change} for product in make_products(3)]
    rows = _preview(writer, tool, changes=changes)["rows"]
    writer.call(f"catalogue.{tool}", {"changes": changes})
    shown = [(row["field"], *(str(row[side]).removesuffix(" EUR") for side in ("before", "after"))) for row in rows]
    assert [change[1:] for change in _history()] == shown
    assert {shown[0] for shown in shown} == {field}


def test_a_long_preview_counts_what_it_leaves_out(writer: Machine) -> None:
    changes = [{"sku": product.sku, "delta": 1} for product in make_products(60)]
    shown = _preview(writer, "adjust_stock", changes=changes)
    assert (len(shown["rows"]), shown["more"], shown["totals"]["products"]) == (50, 10, 60)


# --- New products -----------------------------------------------------------------------------------------------------


def test_a_product_is_created_and_recorded(writer: Machine) -> None:
    make_category()
    answer = writer.call("catalogue.create_product", NEW)
    assert answer.json() | NEW == answer.json()
    assert _history() == [("NEW-1", "product", "", "Reed lamp")]
    entry = Entry.objects.get(action="catalogue.product_created")
    assert entry.resource_uuid == str(Product.objects.get(sku="NEW-1").pk)
    assert writer.call("catalogue.list_products", {"query": "REED"}).json()["count"] == 1


def test_a_product_without_a_currency_takes_the_shops(writer: Machine) -> None:
    make_category()
    body = {name: NEW[name] for name in ("sku", "name", "category", "price")}
    answer = writer.call("catalogue.create_product", body).json()
    assert (answer["currency"], answer["stock"], answer["description"]) == ("EUR", 0, "")


def test_a_sku_that_is_taken_is_refused(writer: Machine) -> None:
    make_product(sku="NEW-1")
    for control in ({}, {"dry_run": True}):
        answer = writer.call("catalogue.create_product", {**NEW, **control})
        assert (answer.status_code, answer.json()["code"], answer.json()["sku"]) == (409, "sku_taken", "NEW-1")


def test_a_product_needs_a_known_category(writer: Machine) -> None:
    assert writer.call("catalogue.create_product", NEW).json()["code"] == "unknown_category"


def test_values_that_do_not_fit_are_refused_at_their_place(writer: Machine) -> None:
    for field, value in (("name", "  "), ("price", 49.9), ("currency", "eur")):
        answer = writer.call("catalogue.create_product", {**NEW, field: value})
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, f"/{field}")


def test_a_preview_of_a_product_shows_its_values(writer: Machine) -> None:
    make_category()
    shown = _preview(writer, "create_product", **NEW)
    assert shown["summary"] == "Create the product NEW-1 Reed lamp."
    assert {row["field"]: row["after"] for row in shown["rows"]} == {**NEW, "description": ""}
    assert not Product.objects.exists()


def test_who_may_change_but_not_add_products_does_not_write(transactional_db: None) -> None:
    owner = factories.make_owner(permissions=["catalogue.change_product"])
    machine = factories.make_machine(owner=owner, scopes=["catalogue:write"])
    assert machine.call("catalogue.adjust_stock").json()["code"] == "forbidden"


@pytest.mark.django_db(transaction=True)
def test_a_session_that_names_no_currency_is_asked_for_one() -> None:
    factories.set_setting("api_session_write_modules", ["catalogue"])
    person = make_person(permissions=[f"catalogue.{verb}_product" for verb in ("view", "add", "change", "delete")])
    body = {"sku": "NEW-1", "name": "Lamp", "category": make_category().slug, "price": "1.00"}
    assert refusal(person.call("catalogue.create_product", body))[:2] == (422, "validation_failed")
    assert (
        answer(person.call("catalogue.create_product", {**body, "currency": "CHF"}))["status"]
        == "confirmation_required"
    )
    context = {"currency": "EUR"}
    assert (
        answer(person.call("catalogue.create_product", body, request_context=context))["status"]
        == "confirmation_required"
    )
