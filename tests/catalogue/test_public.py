"""What a visitor sees: products without their stock."""

import jsonschema
import pytest

from apps.catalogue import shapes
from tests.api.factories import Machine
from tests.catalogue.factories import make_product, make_products

pytestmark = pytest.mark.sqlite


def test_a_visitor_finds_products_by_name(visitor: Machine) -> None:
    make_product(sku="A", name="Reed lamp")
    make_product(sku="B", name="Alder lamp")
    make_product(sku="C", name="Mug")
    answer = visitor.call(
        "catalogue.search_products", {"query": "LAMP", "visitor": "a-visitor-of-16-characters"}
    ).json()
    jsonschema.validate(answer, shapes.PUBLIC_PRODUCTS)
    assert [product["sku"] for product in answer["products"]] == ["B", "A"]
    assert answer["count"] == 2


def test_a_search_shows_as_many_as_asked_and_counts_all(visitor: Machine) -> None:
    make_products(25)
    answers = [visitor.call("catalogue.search_products", body).json() for body in ({}, {"limit": 3})]
    assert [(len(answer["products"]), answer["count"]) for answer in answers] == [(20, 25), (3, 25)]


@pytest.mark.parametrize(("stock", "in_stock"), [(7, True), (0, False)])
def test_a_visitor_hears_whether_there_is_stock_and_not_how_much(visitor: Machine, stock: int, in_stock: bool) -> None:
    make_product(sku="A", stock=stock)
    answer = visitor.call("catalogue.show_product", {"sku": "A"}).json()
    jsonschema.validate(answer, shapes.PUBLIC_PRODUCT)
    assert answer["in_stock"] is in_stock
    assert "stock" not in answer


def test_a_visitor_gets_no_product_that_does_not_exist(visitor: Machine) -> None:
    assert visitor.call("catalogue.show_product", {"sku": "A"}).json()["code"] == "unknown_sku"


def test_a_visitors_token_is_optional_and_not_short(visitor: Machine) -> None:
    assert visitor.call("catalogue.search_products", {"visitor": "short"}).status_code == 422
    assert visitor.call("catalogue.search_products").status_code == 200


def test_a_visitor_reaches_no_other_tool(visitor: Machine) -> None:
    assert visitor.tools() == ["catalogue.ask_for_stock", "catalogue.search_products", "catalogue.show_product"]
    for tool in ("list_products", "get_product", "update_prices"):
        assert visitor.call(f"catalogue.{tool}").json()["code"] == "not_found"
