"""What must be confirmed: the prompt, the code, and what became of the values in between."""

from typing import Any

import pytest

from apps.activity.models import Entry
from apps.api.models import Confirmation
from apps.catalogue.models import Change, Product
from tests.api import factories
from tests.api.factories import Machine
from tests.catalogue.factories import make_product, make_products
from tests.catalogue.prompts import confirmed, prompt

pytestmark = pytest.mark.sqlite


def _priced(sku: str, price: str, **more: Any) -> dict[str, Any]:
    return {"changes": [{"sku": sku, "price": price}], **more}


# --- When prices are dangerous ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "is_dangerous"),
    [
        ("10.00", "13.00", False),
        ("10.00", "13.01", True),
        ("10.00", "7.00", False),
        ("10.00", "6.99", True),
        ("0.03", "0.04", True),
        ("0.00", "0.00", False),
        ("0.00", "0.01", True),
        ("10.00", "0.00", True),
    ],
)
def test_a_change_of_more_than_30_percent_must_be_confirmed(
    writer: Machine, before: str, after: str, is_dangerous: bool
) -> None:
    make_product(sku="A", price=before)
    answer = writer.call("catalogue.update_prices", _priced("A", after)).json()
    assert ("confirm_token" in answer) is is_dangerous
    assert str(Product.objects.get().price) == (before if is_dangerous else after)


def test_one_large_change_among_small_ones_must_be_confirmed(writer: Machine) -> None:
    for sku in ("A", "B", "C"):
        make_product(sku=sku, price="10.00")
    prices = zip("ABC", ["10.10", "20.00", "9.90"], strict=True)
    prompt(writer, "update_prices", {"changes": [{"sku": sku, "price": price} for sku, price in prices]})


@pytest.mark.parametrize(("number", "status"), [(50, None), (51, "confirmation_required")])
def test_more_than_50_prices_must_be_confirmed(writer: Machine, number: int, status: str | None) -> None:
    changes = [{"sku": product.sku, "price": "19.90"} for product in make_products(number)]
    assert writer.call("catalogue.update_prices", {"changes": changes}).json().get("status") == status


@pytest.mark.parametrize("number", [1, 51])
def test_unknown_products_are_refused_and_not_asked_about(writer: Machine, number: int) -> None:
    changes = [{"sku": f"X-{index}", "price": "1.00"} for index in range(number)]
    assert writer.call("catalogue.update_prices", {"changes": changes}).json()["code"] == "unknown_sku"
    assert not Confirmation.objects.exists()


# --- Prompt and code --------------------------------------------------------------------------------------------------


def test_a_prompt_shows_what_the_code_then_does(writer: Machine) -> None:
    make_product(sku="A", name="Lamp", price="10.00")
    asked = prompt(writer, "update_prices", _priced("A", "20.00"))
    row = asked["preview"]["rows"][0]
    assert (row["before"], row["after"], row["note"]) == ("10.00 EUR", "20.00 EUR", "+100.0%")
    assert not Change.objects.exists()
    answer = writer.call("catalogue.update_prices", _priced("A", "20.00", confirm_token=asked["confirm_token"]))
    assert answer.json()["updated"] == 1
    assert Change.objects.get().request_id == answer.headers["X-Request-ID"]
    entry = Entry.objects.get(action="catalogue.prices_updated")
    assert entry.metadata["confirmation_uuid"] == asked["confirmation_id"]


def test_a_price_that_moved_in_between_is_shown_and_not_overwritten(writer: Machine) -> None:
    make_product(sku="A", price="10.00")
    asked = prompt(writer, "update_prices", _priced("A", "20.00"))
    Product.objects.update(price="12.00")
    again = writer.call("catalogue.update_prices", _priced("A", "20.00", confirm_token=asked["confirm_token"])).json()
    assert (again["status"], again["reason"]) == ("confirmation_required", "changed")
    assert again["preview"]["rows"][0]["before"] == "12.00 EUR"
    assert str(Product.objects.get().price) == "12.00"
    answer = writer.call("catalogue.update_prices", _priced("A", "20.00", confirm_token=again["confirm_token"]))
    assert answer.json()["changes"][0]["before"] == "12.00"


def test_a_change_of_something_that_the_prompt_did_not_price_leaves_the_code_good(writer: Machine) -> None:
    make_product(sku="A", price="10.00", stock=10)
    code = prompt(writer, "update_prices", _priced("A", "20.00"))["confirm_token"]
    Product.objects.update(stock=3)
    assert writer.call("catalogue.update_prices", _priced("A", "20.00", confirm_token=code)).json()["updated"] == 1


def test_a_code_is_for_one_price_and_one_run(writer: Machine) -> None:
    make_product(sku="A", price="10.00")
    code = prompt(writer, "update_prices", _priced("A", "20.00"))["confirm_token"]
    reasons = [
        writer.call("catalogue.update_prices", _priced("A", price, confirm_token=code)).json().get("reason")
        for price in ("21.00", "20.00", "20.00")
    ]
    assert reasons == ["other_arguments", None, "used"]
    assert str(Product.objects.get().price) == "20.00"


def test_another_machines_code_is_no_code(writer: Machine) -> None:
    make_product(sku="A", price="10.00")
    code = prompt(writer, "update_prices", _priced("A", "20.00"))["confirm_token"]
    other = factories.make_machine(scopes=["catalogue:write"])
    assert (
        other.call("catalogue.update_prices", _priced("A", "20.00", confirm_token=code)).json()["reason"] == "invalid"
    )
    assert str(Product.objects.get().price) == "10.00"


# --- Repeats with a key -----------------------------------------------------------------------------------------------


def test_stock_that_is_adjusted_twice_with_one_key_moves_once(writer: Machine) -> None:
    make_product(sku="A", stock=10)
    body = {"changes": [{"sku": "A", "delta": -3}]}
    first, second = (
        writer.call("catalogue.adjust_stock", body, headers={"Idempotency-Key": '"order-17"'}) for _ in range(2)
    )
    assert first.content == second.content
    assert second.headers["Idempotent-Replayed"] == "true"
    assert Product.objects.get().stock == 7
    assert Change.objects.count() == 1


def test_a_refusal_is_replayed_even_when_there_is_stock_again(writer: Machine) -> None:
    make_product(sku="A", stock=1)
    body = {"changes": [{"sku": "A", "delta": -3}], "idempotency_key": "order-17"}
    first = writer.call("catalogue.adjust_stock", body)
    Product.objects.update(stock=10)
    second = writer.call("catalogue.adjust_stock", body)
    assert (first.json()["code"], first.content) == ("stock_below_zero", second.content)
    assert Product.objects.get().stock == 10


def test_a_key_stays_the_same_from_the_prompt_to_the_replay(writer: Machine) -> None:
    make_product(sku="A", price="10.00")
    body = _priced("A", "20.00", idempotency_key="spring")
    first = confirmed(writer, "update_prices", body)
    again = writer.call("catalogue.update_prices", body)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert Change.objects.count() == 1
