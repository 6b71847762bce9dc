"""Products and categories for tests. SKUs are numbered, so that each is new and later ones come later."""

from decimal import Decimal
from itertools import count
from typing import Any

from apps.catalogue.models import Category, Product, StockRequest

_numbers = count(1)


def make_category(*, slug: str = "lamps") -> Category:
    """The category with this slug, made when it is missing, and with it its supplier's address."""
    defaults = {"name": slug.capitalize(), "supplier_email": f"{slug}@example.org"}
    category, _ = Category.objects.get_or_create(slug=slug, defaults=defaults)
    return category


def make_product(*, sku: str = "", category: Category | None = None, price: str = "19.90", **fields: Any) -> Product:
    """A lamp for 19.90 EUR, ten in stock."""
    return Product.objects.create(
        **{
            "sku": sku or f"T-{next(_numbers):05}",
            "name": "Fjord desk lamp",
            "category": category or make_category(),
            "price": Decimal(price),
            "currency": "EUR",
            "stock": 10,
            **fields,
        }
    )


def make_products(number: int, **fields: Any) -> list[Product]:
    """Products in the order of their SKUs, written with one statement."""
    category = make_category()
    return Product.objects.bulk_create(
        Product(
            **{
                "sku": f"T-{next(_numbers):05}",
                "name": "Fjord desk lamp",
                "category": category,
                "price": Decimal("19.90"),
                "currency": "EUR",
                "stock": 10,
                **fields,
            }
        )
        for _ in range(number)
    )


def make_request(product: Product, *, email: str) -> StockRequest:
    """Somebody who waits for the product."""
    return StockRequest.objects.create(product=product, email=email)
