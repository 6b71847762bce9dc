"""The admin pages of the catalogue: what a person changes there is in the history, and the history can't be changed."""

from typing import Any

import pytest
from django.test import Client

from apps.catalogue.models import Change, Product
from tests.api import factories
from tests.catalogue.factories import make_category, make_product

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

PRODUCTS, CHANGES = "/admin/catalogue/product/", "/admin/catalogue/change/"


@pytest.fixture
def admin(client: Client) -> Client:
    """A signed-in superuser."""
    client.force_login(factories.make_owner(superuser=True))
    return client


def _form(product: Product, **changes: Any) -> dict[str, Any]:
    """What the browser sends from the product's page as it was shown, with what the person typed."""
    shown = {"price": product.price, "stock": product.stock}
    return {
        "name": product.name,
        "category": product.category_id,
        "currency": product.currency,
        "description": product.description,
        **shown,
        **{f"initial-{name}": value for name, value in shown.items()},
        **changes,
    }


@pytest.mark.parametrize("query", ["", "?q=FJORD", "?in_stock=1", "?currency=EUR"])
def test_products_are_listed_searched_and_filtered(admin: Client, query: str) -> None:
    make_product(sku="LMP-1")
    assert "LMP-1" in admin.get(f"{PRODUCTS}{query}").content.decode()


def test_products_out_of_stock_are_found(admin: Client) -> None:
    make_product(sku="LMP-1")
    make_product(sku="LMP-2", stock=0)
    text = admin.get(f"{PRODUCTS}?in_stock=0").content.decode()
    assert "LMP-2" in text
    assert "LMP-1" not in text


def test_products_of_a_category_are_found(admin: Client) -> None:
    make_product(sku="LMP-1")
    make_product(sku="RUG-1", category=make_category(slug="rugs"))
    text = admin.get(f"{PRODUCTS}?category__id__exact={make_category(slug='rugs').pk}").content.decode()
    assert "RUG-1" in text
    assert "LMP-1" not in text


def test_categories_show_how_many_products_they_hold(admin: Client) -> None:
    make_product(category=make_category(slug="rugs"))
    assert '<td class="field-product_count">1</td>' in admin.get("/admin/catalogue/category/").content.decode()


def test_a_new_product_is_recorded(admin: Client) -> None:
    data = _form(Product(name="Lamp", category=make_category(), price=5, currency="EUR", stock=2), sku="LMP-1")
    answer = admin.post(f"{PRODUCTS}add/", data)
    assert answer.status_code == 302
    change = Change.objects.get()
    assert (change.sku, change.field, change.request_id) == ("LMP-1", "product", answer.headers["X-Request-ID"])


def test_a_changed_price_is_recorded_and_found_by_search(admin: Client) -> None:
    product = make_product(price="10.00")
    admin.post(f"{PRODUCTS}{product.pk}/change/", _form(product, price="12.00", name="Brook lamp"))
    change = Change.objects.get()
    assert (change.field, change.before, change.after) == ("price", "10.00", "12.00")
    assert Product.objects.matching("brook").get().price == 12


def test_a_page_that_was_open_for_a_while_writes_no_old_stock_back(admin: Client) -> None:
    product = make_product(stock=10)
    Product.objects.update(stock=4)
    admin.post(f"{PRODUCTS}{product.pk}/change/", _form(product, name="Brook lamp"))
    product.refresh_from_db()
    assert (product.name, product.stock) == ("Brook lamp", 4)
    assert not Change.objects.exists()


def test_a_sku_does_not_change(admin: Client) -> None:
    product = make_product(sku="LMP-1")
    admin.post(f"{PRODUCTS}{product.pk}/change/", _form(product, sku="LMP-2"))
    assert Product.objects.get().sku == "LMP-1"


def test_history_is_shown_and_can_not_be_changed(admin: Client) -> None:
    change = Change.objects.create(sku="LMP-1", field="price", before="1", after="2", request_id="r")
    assert "LMP-1" in admin.get(f"{CHANGES}?q=LMP-1").content.decode()
    pages = [f"{CHANGES}add/", f"{CHANGES}{change.pk}/delete/"]
    assert [admin.post(page, {"post": "yes"}).status_code for page in pages] == [403, 403]
    assert admin.post(f"{CHANGES}{change.pk}/change/", {"sku": "X"}).status_code == 403
    assert Change.objects.get().sku == "LMP-1"


def test_history_outlives_its_product_and_tells_that_it_went(admin: Client) -> None:
    product = make_product(sku="LMP-1", name="Lamp")
    Change.objects.create(product=product, sku="LMP-1", field="price", before="1", after="2", request_id="r")
    answer = admin.post(f"{PRODUCTS}{product.pk}/delete/", {"post": "yes"})
    assert not Change.objects.exclude(product=None).exists()
    rows = Change.objects.order_by("pk").values_list("sku", "before", "after", "request_id")
    assert list(rows) == [
        ("LMP-1", "1", "2", "r"),
        ("LMP-1", "Lamp", "", answer.headers["X-Request-ID"]),
    ]


def test_products_that_are_deleted_together_are_all_recorded(admin: Client) -> None:
    products = [make_product(sku=sku) for sku in ("LMP-1", "LMP-2")]
    data = {"action": "delete_selected", "_selected_action": [product.pk for product in products], "post": "yes"}
    assert admin.post(PRODUCTS, data).status_code == 302
    assert set(Change.objects.values_list("sku", "after")) == {("LMP-1", ""), ("LMP-2", "")}
