"""What a visitor may see and ask, without a key: products without the number of their pieces."""

from typing import Annotated, Any

from pydantic import Field

from apps.api import Context, fingerprint, preview, row
from apps.catalogue import lookup, shapes
from apps.catalogue.models import Product, StockRequest
from apps.catalogue.shapes import Address, Limit, Query, Sku
from apps.catalogue.tools.declaration import module


@module.tool(
    "catalogue.search_products",
    title="Search products",
    audience="public",
    client_token="visitor",  # noqa: S106 - the name of a field
    output_schema=shapes.PUBLIC_PRODUCTS,
    annotations={"read_only": True},
)
def search_products(
    ctx: Context,
    *,
    query: Query = "",
    limit: Limit = 20,
    visitor: Annotated[str, Field(description="A token of the caller's own choice.")] | None = None,
) -> dict[str, Any]:
    """Products that match all the words, by name."""
    found = Product.objects.matching(query)
    products = found.select_related("category").order_by("name", "sku")[:limit]
    return {"products": [shapes.public_product(product) for product in products], "count": found.count()}


@module.tool(
    "catalogue.show_product",
    title="Show a product",
    audience="public",
    output_schema=shapes.PUBLIC_PRODUCT,
    annotations={"read_only": True},
)
def show_product(ctx: Context, *, sku: Sku) -> dict[str, Any]:
    """One product as visitors see it, by its SKU."""
    return shapes.public_product(lookup.product(sku))


@module.tool(
    "catalogue.ask_for_stock",
    title="Ask for stock",
    audience="public",
    client_token="visitor",  # noqa: S106 - the name of a field
    output_schema=shapes.STOCK_REQUEST,
    annotations={"destructive": False, "idempotent": True},
)
def ask_for_stock(
    ctx: Context,
    *,
    sku: Sku,
    email: Address,
    visitor: Annotated[str, Field(description="A token of the caller's own choice.")],
) -> dict[str, Any]:
    """Ask the shop to write to an address when there is more of a product. Asking again changes nothing."""
    # Locked: a product that is being deleted is waited for, and is unknown then.
    product = lookup.products([sku], lock=True)[sku]
    _, is_new = StockRequest.objects.get_or_create(product=product, email__iexact=email, defaults={"email": email})
    if is_new:
        ctx.log("catalogue.stock_requested", "product", product.pk, {"sku": sku})
    # The same for everybody: who asked already is not a stranger's business.
    return {"sku": sku, "noted": True}


@ask_for_stock.preview
def preview_request(ctx: Context, *, sku: Sku, email: Address, visitor: str) -> tuple[dict[str, Any], str]:
    product = lookup.product(sku)
    rows = [row(str(product), "request for stock", after=email)]
    return preview(f"Ask for {product}.", rows), fingerprint([sku], {sku: product.name})
