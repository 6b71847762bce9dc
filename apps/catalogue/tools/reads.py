"""What a key may read: products, one by one or a page at a time."""

from typing import Annotated, Any

from pydantic import Field

from apps.api import Context
from apps.catalogue import lookup, paging, shapes
from apps.catalogue.models import Product
from apps.catalogue.shapes import CategorySlug, Limit, Money, Query, Sku
from apps.catalogue.tools.declaration import READ, module


@module.tool(
    "catalogue.list_products",
    title="List products",
    scope=READ,
    permission="catalogue.view_product",
    output_schema=shapes.PRODUCT_PAGE,
    annotations={"read_only": True},
)
def list_products(
    ctx: Context,
    *,
    query: Query = "",
    category: CategorySlug | None = None,
    in_stock: Annotated[bool, Field(description="true: only what is in stock; false: only what is not.")] | None = None,
    min_price: Money | None = None,
    max_price: Money | None = None,
    limit: Limit = 20,
    cursor: Annotated[str, Field(max_length=100, description="next_cursor of the page before.")] | None = None,
) -> dict[str, Any]:
    """Products in the order of their SKUs, filtered by words, category, stock and price, a page at a time. `count` counts all pages."""
    found = Product.objects.matching(query)
    if category is not None:
        found = found.filter(category=lookup.category(category))
    if in_stock is not None:
        found = found.stocked(in_stock=in_stock)
    if min_price is not None:
        found = found.filter(price__gte=min_price)
    if max_price is not None:
        found = found.filter(price__lte=max_price)
    products, next_cursor = paging.page(found.select_related("category"), cursor=cursor, limit=limit)
    return {
        "products": [shapes.product(product) for product in products],
        "count": found.count(),
        "next_cursor": next_cursor,
    }


@module.tool(
    "catalogue.get_product",
    title="Get a product",
    scope=READ,
    permission="catalogue.view_product",
    output_schema=shapes.PRODUCT,
    annotations={"read_only": True},
)
def get_product(ctx: Context, *, sku: Sku) -> dict[str, Any]:
    """One product with its price and stock, by its SKU."""
    return shapes.product(lookup.product(sku))
