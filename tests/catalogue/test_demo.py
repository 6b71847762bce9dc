"""The shop that the demo sells."""

import pytest

from apps.catalogue import demo
from apps.catalogue.assortment import RANGES
from apps.catalogue.models import Category, Product
from tests.catalogue.factories import make_product

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def test_an_empty_catalogue_gets_about_500_products_in_12_categories() -> None:
    assert demo.fill() == Product.objects.count() == 504
    assert Category.objects.count() == 12
    assert Product.objects.values("name").distinct().count() == 504


def test_there_are_lamps_and_some_products_are_out_of_stock() -> None:
    demo.fill()
    assert Product.objects.matching("lamp").filter(category__slug="lamps").count() == demo.PER_CATEGORY
    assert 10 < Product.objects.stocked(in_stock=False).count() < 100


def test_every_product_passes_its_own_rules() -> None:
    demo.fill()
    for product in Product.objects.select_related("category"):
        product.clean_fields()


def test_the_products_are_the_same_each_time() -> None:
    categories = {kind.slug: Category(slug=kind.slug) for kind in RANGES}
    first, second = (
        [(row.pk, str(row), row.price, row.stock, row.description) for row in demo.generate(categories)]
        for _ in range(2)
    )
    assert first == second


def test_a_catalogue_with_a_product_is_left_alone() -> None:
    make_product()
    assert demo.fill() == 0
    assert Product.objects.count() == 1


def test_each_category_has_a_supplier_and_some_share_one() -> None:
    demo.fill()
    addresses = Category.objects.values_list("supplier_email", flat=True)
    assert all(address.endswith(".example.org") for address in addresses)
    assert 1 < len(set(addresses)) < 12
