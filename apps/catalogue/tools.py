"""The catalogue's tools: what a key may read and change, and what a visitor may see."""

from collections.abc import Sequence
from typing import Annotated, Any

from django.db import IntegrityError
from pydantic import Field

from apps.api import Context, Module, ToolError, fingerprint, preview, row
from apps.catalogue import history, paging, shapes
from apps.catalogue.models import Category, Change, Product
from apps.catalogue.shapes import (
    CategorySlug,
    Limit,
    Money,
    NewProduct,
    PriceChanges,
    Query,
    Sku,
    StockChanges,
)

READ, WRITE = "catalogue:read", "catalogue:write"

module = Module(
    key="catalogue",
    name="Catalogue",
    problems={
        "unknown_sku": (404, "Unknown SKU"),
        "unknown_category": (404, "Unknown category"),
        "sku_taken": (409, "SKU taken"),
        "stock_below_zero": (409, "Stock would fall below zero"),
        "duplicate_sku": (422, "SKU named twice"),
    },
)


# --- Reads -----------------------------------------------------------------------------------------------------------


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
        found = found.filter(category=_category(category))
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
    return shapes.product(_product(sku))


# --- Writes ----------------------------------------------------------------------------------------------------------


@module.tool(
    "catalogue.create_product",
    title="Create a product",
    scope=WRITE,
    permission="catalogue.add_product",
    annotations={"destructive": False, "idempotent": False},
)
def create_product(input: NewProduct, ctx: Context) -> dict[str, Any]:
    """Add a product to a category. The SKU must be new. Answers the product."""
    product = _new_product(input, ctx)
    try:
        product.save()
    except IntegrityError:  # another caller was faster
        raise _taken(input.sku) from None
    created = history.Step(product=product, before=None, after=product.name)
    history.record([created], field=Change.Field.PRODUCT, request_id=ctx.request_id)
    ctx.log("catalogue.product_created", "product", product.pk, {"sku": product.sku})
    return shapes.product(product)


@create_product.preview
def preview_product(input: NewProduct, ctx: Context) -> tuple[dict[str, Any], str]:
    product = _new_product(input, ctx)
    rows = [row(str(product), field, after=value) for field, value in shapes.given(product).items()]
    return preview(f"Create the product {product}.", rows, totals={"products": 1}), fingerprint([product.sku], {})


@module.tool(
    "catalogue.update_prices",
    title="Update prices",
    scope=WRITE,
    permission="catalogue.change_product",
    annotations={"destructive": True, "idempotent": True},
    max_items=shapes.MAX_CHANGES,
)
def update_prices(
    ctx: Context,
    *,
    changes: PriceChanges,
    reason: Annotated[str, Field(max_length=500, description="Why; kept in the history.")] = "",
) -> dict[str, Any]:
    """Set the prices of up to 500 products, all of them or none. Each product at most once; currencies stay as they are."""
    steps = history.plan_prices(changes, lock=True)
    history.apply(steps, field=Change.Field.PRICE, request_id=ctx.request_id, reason=reason)
    ctx.log("catalogue.prices_updated", "product", "", {"products": len(steps)})
    return {"updated": len(steps), "changes": [_price_change(step) for step in steps]}


@update_prices.preview
def preview_prices(ctx: Context, *, changes: PriceChanges, reason: str) -> tuple[dict[str, Any], str]:
    steps = history.plan_prices(changes, lock=False)
    rows = [
        row(
            str(step.product),
            "price",
            before=f"{shapes.money(step.before)} {step.product.currency}",
            after=f"{shapes.money(step.after)} {step.product.currency}",
            note=_percent(step),
        )
        for step in steps
    ]
    summary = f"Set {_counted('price', steps)}: {reason}" if reason else f"Set {_counted('price', steps)}."
    mark = fingerprint(
        [step.product.sku for step in steps],
        {step.product.sku: [step.product.price, step.product.currency] for step in steps},
    )
    return preview(summary, rows, totals=_directions(steps)), mark


@module.tool(
    "catalogue.adjust_stock",
    title="Adjust stock",
    scope=WRITE,
    permission="catalogue.change_product",
    annotations={"destructive": True, "idempotent": False},
    max_items=shapes.MAX_CHANGES,
)
def adjust_stock(ctx: Context, *, changes: StockChanges) -> dict[str, Any]:
    """Add to or take from the stock of up to 500 products, all of them or none. No stock falls below zero."""
    steps = history.plan_stock(changes, lock=True)
    history.apply(steps, field=Change.Field.STOCK, request_id=ctx.request_id)
    ctx.log("catalogue.stock_adjusted", "product", "", {"products": len(steps)})
    return {
        "adjusted": len(steps),
        "changes": [{"sku": step.product.sku, "before": step.before, "after": step.after} for step in steps],
    }


@adjust_stock.preview
def preview_stock(ctx: Context, *, changes: StockChanges) -> tuple[dict[str, Any], str]:
    steps = history.plan_stock(changes, lock=False)
    rows = [
        row(str(step.product), "stock", before=step.before, after=step.after, note=f"{step.after - step.before:+d}")
        for step in steps
    ]
    summary = f"Adjust the stock of {_counted('product', steps)}."
    mark = fingerprint([step.product.sku for step in steps], {step.product.sku: step.product.stock for step in steps})
    return preview(summary, rows, totals=_directions(steps)), mark


# --- Public ----------------------------------------------------------------------------------------------------------


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
    return shapes.public_product(_product(sku))


# --- Shared ----------------------------------------------------------------------------------------------------------


def _product(sku: str) -> Product:
    try:
        return Product.objects.select_related("category").get(sku=sku)
    except Product.DoesNotExist:
        raise ToolError("unknown_sku", f"There is no product {sku}.", skus=[sku]) from None


def _category(slug: str) -> Category:
    category = Category.objects.filter(slug=slug).first()
    if category is None:
        known = list(Category.objects.order_by("slug").values_list("slug", flat=True)[:100])
        raise ToolError("unknown_category", "There is no such category.", categories=known)
    return category


def _new_product(input: NewProduct, ctx: Context) -> Product:
    """The product that the input describes, not saved yet."""
    if Product.objects.filter(sku=input.sku).exists():
        raise _taken(input.sku)
    values = input.model_dump() | {
        "category": _category(input.category),
        "currency": input.currency or ctx.currency,
    }
    return Product(**values)


def _taken(sku: str) -> ToolError:
    return ToolError("sku_taken", f"There is a product {sku} already.", sku=sku)


def _price_change(step: history.Step) -> dict[str, str]:
    return {
        "sku": step.product.sku,
        "before": shapes.money(step.before),
        "after": shapes.money(step.after),
        "currency": step.product.currency,
    }


def _percent(step: history.Step) -> str:
    if step.before == step.after:
        return "no change"
    return f"{(step.after - step.before) / step.before:+.1%}" if step.before else "was free"


def _directions(steps: Sequence[history.Step]) -> dict[str, int]:
    return {
        "products": len(steps),
        "raised": sum(step.after > step.before for step in steps),
        "lowered": sum(step.after < step.before for step in steps),
    }


def _counted(noun: str, steps: Sequence[history.Step]) -> str:
    return f"{len(steps)} {noun}" if len(steps) == 1 else f"{len(steps)} {noun}s"
