"""What a key reads: pages, filters, one product."""

import base64
from typing import Any

import jsonschema
import pytest

from apps.catalogue import shapes
from tests.api import factories
from tests.api.factories import Machine
from tests.catalogue import queries
from tests.catalogue.factories import make_category, make_product, make_products

pytestmark = pytest.mark.sqlite


def _listed(machine: Machine, **input: Any) -> dict[str, Any]:
    answer = machine.call("catalogue.list_products", input)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def _skus(machine: Machine, **input: Any) -> list[str]:
    return [product["sku"] for product in _listed(machine, **input)["products"]]


def test_a_product_answers_with_its_price_as_a_decimal_string(reader: Machine) -> None:
    make_product(sku="LMP-1", price="1234.5", stock=3, description="Warm light.")
    answer = reader.call("catalogue.get_product", {"sku": "LMP-1"}).json()
    jsonschema.validate(answer, shapes.PRODUCT)
    assert answer | {"created_at": "", "updated_at": ""} == {
        "sku": "LMP-1",
        "name": "Fjord desk lamp",
        "category": "lamps",
        "price": "1234.50",
        "currency": "EUR",
        "description": "Warm light.",
        "stock": 3,
        "created_at": "",
        "updated_at": "",
    }


def test_a_product_is_read_with_one_query(reader: Machine) -> None:
    make_product(sku="LMP-1")
    with queries.captured() as statements:
        reader.call("catalogue.get_product", {"sku": "LMP-1"})
    assert len(statements) == 1


@pytest.mark.parametrize("sku", ["LMP-2", "lmp-1"])
def test_an_unknown_sku_is_refused_by_name(reader: Machine, sku: str) -> None:
    make_product(sku="LMP-1")
    answer = reader.call("catalogue.get_product", {"sku": sku})
    assert (answer.status_code, answer.json()["code"], answer.json()["skus"]) == (404, "unknown_sku", [sku])


def test_the_first_page_has_twenty_products_and_counts_all(reader: Machine) -> None:
    made = make_products(23)
    page = _listed(reader)
    jsonschema.validate(page, shapes.PRODUCT_PAGE)
    assert [product["sku"] for product in page["products"]] == [product.sku for product in made[:20]]
    assert page["count"] == 23


def test_pages_show_each_product_once_while_others_come_and_go(reader: Machine) -> None:
    made = make_products(7)
    seen, cursor = [], None
    while True:
        page = _listed(reader, limit=3, **({"cursor": cursor} if cursor else {}))
        seen += [product["sku"] for product in page["products"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
        make_product(sku=f"A-{len(seen)}")
        made[len(seen) - 1].delete()
    assert seen == [product.sku for product in made]


def test_the_last_full_page_has_no_cursor(reader: Machine) -> None:
    make_products(4)
    assert _listed(reader, limit=4)["next_cursor"] is None


def test_no_products_are_an_empty_page(reader: Machine) -> None:
    assert _listed(reader) == {"products": [], "count": 0, "next_cursor": None}


def test_what_is_no_cursor_is_refused_at_its_place(reader: Machine) -> None:
    encoded = [base64.urlsafe_b64encode(sku).decode() for sku in (b"", b"\0", b"a b", b"\xff")]
    for cursor in ["x", "%%%%", "ä", "", *encoded]:
        answer = reader.call("catalogue.list_products", {"cursor": cursor})
        assert (answer.status_code, answer.json()["code"]) == (422, "validation_failed"), cursor
        assert answer.json()["errors"][0]["pointer"] == "/cursor"


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["CUP-1", "LMP-1", "LMP-2"]),
    ({"category": "lamps"}, ["LMP-1", "LMP-2"]),
    ({"in_stock": True}, ["CUP-1", "LMP-1"]),
    ({"in_stock": False}, ["LMP-2"]),
    ({"min_price": "20"}, ["LMP-1", "LMP-2"]),
    ({"min_price": "20.01"}, ["LMP-2"]),
    ({"max_price": "20.00"}, ["CUP-1", "LMP-1"]),
    ({"min_price": "9", "max_price": "20"}, ["CUP-1", "LMP-1"]),
    ({"min_price": "21", "max_price": "20"}, []),
    ({"category": "lamps", "query": "oak", "in_stock": True}, ["LMP-1"]),
]


def test_filters_narrow_the_list_and_its_count(reader: Machine) -> None:
    make_product(sku="LMP-1", name="Fjord lamp, oak", price="20.00")
    make_product(sku="LMP-2", name="Reed lamp, oak", price="100.00", stock=0)
    make_product(sku="CUP-1", name="Mug", price="9.90", category=make_category(slug="tableware"))
    for filters, expected in FILTERS:
        page = _listed(reader, **filters)
        assert ([product["sku"] for product in page["products"]], page["count"]) == (expected, len(expected)), filters


def test_words_are_found_in_name_sku_and_description_in_any_case(reader: Machine) -> None:
    make_product(sku="XL-77", name="Lamp of Oak in Größe 2", description="For long EVENINGS, 100% wood.")
    make_product(sku="Other", name="Lamp")
    for query in ("größe", "GRÖSSE", "gro\u0308ße", "oak lamp", "lamp  OAK", "xl-77", "evenings", "100%"):
        assert _skus(reader, query=query) == ["XL-77"], query


def test_a_query_matches_only_what_it_says(reader: Machine) -> None:
    make_product(name="Lamp, oak")
    make_product(name="Mug")
    for query in ("%", "_", "\\", "oak mug"):
        assert _skus(reader, query=query) == [], query
    for query in ("", "   "):
        assert len(_skus(reader, query=query)) == 2


def test_an_unknown_category_is_refused_with_the_known_ones(reader: Machine) -> None:
    make_category(slug="rugs")
    make_category(slug="lamps")
    answer = reader.call("catalogue.list_products", {"category": "Lamps"})
    assert (answer.status_code, answer.json()["code"]) == (404, "unknown_category")
    assert answer.json()["categories"] == ["lamps", "rugs"]


def test_a_list_costs_the_same_two_queries_whatever_its_length(reader: Machine) -> None:
    make_products(100)
    with queries.captured() as statements:
        _listed(reader, limit=100)
    assert len(statements) == 2


def test_who_may_not_view_products_reads_none(transactional_db: None) -> None:
    owner = factories.make_owner(permissions=["catalogue.change_product"])
    machine = factories.make_machine(owner=owner, scopes=["catalogue:read"])
    assert machine.call("catalogue.list_products").json()["code"] == "forbidden"
    factories.grant(owner, "catalogue.view_product")
    assert machine.call("catalogue.list_products").status_code == 200
