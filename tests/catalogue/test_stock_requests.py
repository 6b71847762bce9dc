"""A visitor asks to hear of new stock: noted once, without a word to others about who asked, and repeated safely."""

from typing import Any

import pytest
from django.test import Client

from apps.activity.models import Entry
from apps.catalogue.models import StockRequest
from tests.api import factories
from tests.api.factories import Machine
from tests.catalogue.factories import make_product, make_request

pytestmark = pytest.mark.sqlite

TOOL = "catalogue.ask_for_stock"
TOKEN = "a-visitor-of-16-characters"


def _body(**more: Any) -> dict[str, Any]:
    return {"sku": "A", "email": "member@example.org", "visitor": TOKEN, **more}


def test_a_visitor_is_noted(visitor: Machine) -> None:
    product = make_product(sku="A")
    answer = visitor.call(TOOL, _body())
    assert (answer.status_code, answer.json()) == (200, {"sku": "A", "noted": True})
    assert StockRequest.objects.filter(product=product, email="member@example.org").count() == 1


@pytest.mark.parametrize("email", ["member@example.org", "MEMBER@Example.org"])
def test_asking_again_is_answered_alike_and_noted_once(visitor: Machine, email: str) -> None:
    make_product(sku="A")
    first = visitor.call(TOOL, _body())
    again = visitor.call(TOOL, _body(email=email, visitor="another-visitor-of-it"))
    assert first.content == again.content
    assert StockRequest.objects.count() == 1


def test_other_addresses_and_other_products_are_noted_too(visitor: Machine) -> None:
    make_product(sku="A")
    make_product(sku="B")
    for change in ({}, {"email": "other@example.org"}, {"sku": "B"}):
        visitor.call(TOOL, _body(**change))
    assert StockRequest.objects.count() == 3


def test_the_address_is_in_no_entry(visitor: Machine) -> None:
    product = make_product(sku="A")
    for _ in range(2):
        visitor.call(TOOL, _body())
    (entry,) = Entry.objects.all()
    assert (entry.action, entry.resource_uuid) == ("catalogue.stock_requested", str(product.pk))
    for secret in ("member@", TOKEN):
        assert secret not in str(list(Entry.objects.values()))


def test_a_preview_shows_the_request_and_notes_nothing(visitor: Machine) -> None:
    make_product(sku="A", name="Lamp")
    shown = visitor.call(TOOL, _body(dry_run=True)).json()["preview"]
    assert shown["summary"] == "Ask for A Lamp."
    assert shown["rows"][0]["after"] == "member@example.org"
    assert not StockRequest.objects.exists()


def test_a_repeat_with_the_key_and_token_is_replayed(visitor: Machine) -> None:
    make_product(sku="A")
    first, again = (visitor.call(TOOL, _body(), headers={"Idempotency-Key": "k-1"}) for _ in range(2))
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")


def test_another_visitors_key_is_another_key(visitor: Machine) -> None:
    make_product(sku="A")
    visitor.call(TOOL, _body(idempotency_key="k-1"))
    other = visitor.call(TOOL, _body(idempotency_key="k-1", visitor="another-visitor-of-it"))
    assert other.status_code == 200
    assert "Idempotent-Replayed" not in other.headers


def test_one_key_is_for_one_request(visitor: Machine) -> None:
    make_product(sku="A")
    visitor.call(TOOL, _body(idempotency_key="k-1"))
    assert visitor.call(TOOL, _body(idempotency_key="k-1", email="b@example.org")).json()["code"] == (
        "idempotency_key_reused"
    )


def test_without_a_token_neither_a_call_nor_a_key_is_taken(visitor: Machine) -> None:
    make_product(sku="A")
    body = {name: value for name, value in _body().items() if name != "visitor"}
    for headers in ({}, {"Idempotency-Key": "k-1"}):
        answer = visitor.call(TOOL, body, headers=headers)
        assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/visitor")
    assert not StockRequest.objects.exists()


@pytest.mark.parametrize(
    "email",
    ["", "member", "member@", "@example.org", "member@example.org\n", "member@example.org, b@example.org", f"{'a' * 250}@example.org"],
)  # fmt: skip
def test_what_is_no_address_is_refused_at_its_place(visitor: Machine, email: str) -> None:
    make_product(sku="A")
    answer = visitor.call(TOOL, _body(email=email))
    assert (answer.status_code, answer.json()["errors"][0]["pointer"]) == (422, "/email")


def test_an_unknown_product_is_refused(visitor: Machine) -> None:
    for control in ({}, {"dry_run": True}):
        assert visitor.call(TOOL, _body(**control)).json()["code"] == "unknown_sku"


def test_where_the_public_audience_is_off_nobody_asks(transactional_db: None) -> None:
    factories.set_setting("api_public_enabled", False)
    assert Machine().call(TOOL, _body()).json()["code"] == "api_disabled"


@pytest.mark.django_db
def test_a_person_reads_requests_and_deletes_but_does_not_change_them(client: Client) -> None:
    client.force_login(factories.make_owner(superuser=True))
    asked = make_request(make_product(sku="LMP-1", stock=7), email="member@example.org")
    pages = "/admin/catalogue/stockrequest/"
    text = client.get(f"{pages}?q=lmp-1").content.decode()
    assert "member@example.org" in text
    assert '<td class="field-in_stock">7</td>' in text
    assert client.post(f"{pages}add/").status_code == 403
    assert client.post(f"{pages}{asked.pk}/change/", {"email": "x@example.org"}).status_code == 403
    assert client.post(f"{pages}{asked.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not StockRequest.objects.exists()
