"""Products that go for ever: asked about first, all of them or none, and remembered in the history."""

from typing import Any

import pytest
from django.db import connection

from apps.activity.models import Entry
from apps.catalogue.models import Change, Product, StockRequest
from tests.api import factories
from tests.api.factories import Machine
from tests.catalogue import queries
from tests.catalogue.factories import make_product, make_products, make_request
from tests.catalogue.prompts import confirmed, prompt

pytestmark = pytest.mark.sqlite

TOOL = "catalogue.delete_products"


def _history() -> list[tuple[str, str, str, str]]:
    return list(Change.objects.order_by("pk").values_list("sku", "field", "before", "after"))


def test_products_are_deleted_after_a_confirmation_and_others_stay(writer: Machine) -> None:
    for sku in ("A", "B", "C"):
        make_product(sku=sku)
    answer = confirmed(writer, "delete_products", {"skus": ["C", "A"]})
    assert answer.json() == {"deleted": 2, "skus": ["C", "A"]}
    assert list(Product.objects.values_list("sku", flat=True)) == ["B"]


def test_the_history_keeps_what_was_and_names_the_request(writer: Machine) -> None:
    make_product(sku="A", name="Reed lamp", price="10.00")
    writer.call("catalogue.update_prices", {"changes": [{"sku": "A", "price": "11.00"}]})
    answer = confirmed(writer, "delete_products", {"skus": ["A"]})
    assert _history() == [("A", "price", "10.00", "11.00"), ("A", "product", "Reed lamp", "")]
    gone = Change.objects.get(field="product")
    assert (gone.product, gone.request_id) == (None, answer.headers["X-Request-ID"])


def test_a_deletion_leaves_one_entry_of_the_module(writer: Machine) -> None:
    skus = [product.sku for product in make_products(3)]
    confirmed(writer, "delete_products", {"skus": skus})
    assert Entry.objects.get(action="catalogue.products_deleted").metadata["products"] == 3


def test_what_disappears_is_shown_with_the_requests_of_visitors(writer: Machine) -> None:
    make_product(sku="A", name="Lamp", price="10.00", stock=4)
    asked_for = make_product(sku="B", name="Mug", price="7.00", stock=0)
    make_request(asked_for, email="one@example.org")
    shown = prompt(writer, "delete_products", {"skus": ["B", "A"]})["preview"]
    assert shown["summary"] == "Delete 2 products for ever."
    assert shown["rows"] == [
        {"label": "B Mug", "field": "product", "before": "7.00 EUR, 0 in stock", "after": None, "note": "1 request for stock"},
        {"label": "A Lamp", "field": "product", "before": "10.00 EUR, 4 in stock", "after": None, "note": ""},
    ]  # fmt: skip
    assert shown["totals"] == {"products": 2, "pieces": 4, "requests": 1}


def test_requests_go_with_their_product(writer: Machine) -> None:
    make_request(make_product(sku="A"), email="one@example.org")
    kept = make_request(make_product(sku="B"), email="one@example.org")
    confirmed(writer, "delete_products", {"skus": ["A"]})
    assert list(StockRequest.objects.all()) == [kept]


@pytest.mark.parametrize("change", [{"stock": 9}, {"price": "1.00"}, {"name": "Mug"}, {"currency": "CHF"}])
def test_any_value_that_was_shown_and_changed_is_asked_about_again(writer: Machine, change: dict[str, Any]) -> None:
    make_product(sku="A", stock=10)
    code = prompt(writer, "delete_products", {"skus": ["A"]})["confirm_token"]
    Product.objects.update(**change)
    again = writer.call(TOOL, {"skus": ["A"], "confirm_token": code}).json()
    assert (again["status"], again["reason"]) == ("confirmation_required", "changed")
    assert Product.objects.exists()


def test_a_request_that_came_in_between_is_asked_about_again(writer: Machine) -> None:
    product = make_product(sku="A")
    code = prompt(writer, "delete_products", {"skus": ["A"]})["confirm_token"]
    make_request(product, email="one@example.org")
    again = writer.call(TOOL, {"skus": ["A"], "confirm_token": code}).json()
    assert again["reason"] == "changed"
    assert again["preview"]["totals"]["requests"] == 1
    assert writer.call(TOOL, {"skus": ["A"], "confirm_token": again["confirm_token"]}).json()["deleted"] == 1


def test_a_product_that_went_in_between_is_unknown(writer: Machine) -> None:
    skus = [product.sku for product in make_products(2)]
    code = prompt(writer, "delete_products", {"skus": skus})["confirm_token"]
    Product.objects.filter(sku=skus[0]).delete()
    assert writer.call(TOOL, {"skus": skus, "confirm_token": code}).json()["skus"] == skus[:1]
    assert Product.objects.count() == 1


@pytest.mark.parametrize(
    ("skus", "code"),
    [
        (["A", "X"], "unknown_sku"),
        (["A", "A"], "duplicate_sku"),
        ([], "validation_failed"),
        (["a b"], "validation_failed"),
        ([f"X-{number}" for number in range(101)], "too_many_items"),
    ],
)
def test_what_can_not_be_deleted_whole_is_refused(writer: Machine, skus: list[str], code: str) -> None:
    make_product(sku="A")
    assert writer.call(TOOL, {"skus": skus}).json()["code"] == code
    assert Product.objects.count() == 1


def test_a_preview_deletes_nothing(writer: Machine) -> None:
    make_product(sku="A")
    assert writer.call(TOOL, {"skus": ["A"], "dry_run": True}).json()["status"] == "preview"
    assert Product.objects.exists()


def test_100_products_take_no_query_for_a_row(writer: Machine) -> None:
    counts = []
    for number in (1, 100):
        products = make_products(number)
        for product in products:
            make_request(product, email="one@example.org")
        body = {"skus": [product.sku for product in products]}
        with queries.captured() as statements:
            assert confirmed(writer, "delete_products", body).json()["deleted"] == number
        counts.append(len(statements))
    assert counts[0] == counts[1] if connection.vendor == "postgresql" else counts[1] <= counts[0] + 2


def test_a_repeat_with_the_key_is_answered_though_the_products_are_gone(writer: Machine) -> None:
    make_product(sku="A")
    body = {"skus": ["A"], "idempotency_key": "clearance"}
    first = confirmed(writer, "delete_products", body)
    again = writer.call(TOOL, body)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert Change.objects.count() == 1


def test_who_may_not_delete_holds_nothing_of_the_scope(transactional_db: None) -> None:
    owner = factories.make_owner(permissions=["catalogue.change_product", "catalogue.add_product"])
    machine = factories.make_machine(owner=owner, scopes=["catalogue:write"])
    assert machine.call(TOOL).json()["code"] == "forbidden"
    factories.grant(owner, "catalogue.delete_product")
    assert machine.call(TOOL).json()["code"] == "validation_failed"
