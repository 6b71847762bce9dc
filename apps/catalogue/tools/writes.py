"""What a key may change: all of a call or none of it, each change with its row in the history."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Annotated, Any

from django.db import IntegrityError
from pydantic import Field

from apps.api import Context, ToolError, fingerprint, preview, row
from apps.catalogue import history, lookup, shapes
from apps.catalogue.models import Change, Product, StockRequest
from apps.catalogue.shapes import DeletedSkus, NewProduct, PriceChanges, StockChanges
from apps.catalogue.tools.declaration import WRITE, module

MANY_PRICES = 50
LARGE_CHANGE = Decimal("0.3")


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
    history.record([created], field=Change.Field.PRODUCT, request_id=ctx.request_id or "")
    ctx.log("catalogue.product_created", "product", product.pk, {"sku": product.sku})
    return shapes.product(product)


@create_product.preview
def preview_product(input: NewProduct, ctx: Context) -> tuple[dict[str, Any], str]:
    product = _new_product(input, ctx)
    rows = [row(str(product), field, after=value) for field, value in shapes.given(product).items()]
    return preview(f"Create the product {product}.", rows, totals={"products": 1}), fingerprint([product.sku], {})


def _is_large(ctx: Context, *, changes: PriceChanges, reason: str) -> bool:
    """More than 50 prices, or one that moves by more than 30 %; whatever was free moves by more."""
    if len(changes) > MANY_PRICES:
        return True
    steps = history.plan_prices(changes, lock=False)
    return any(abs(step.after - step.before) > step.before * LARGE_CHANGE for step in steps)


@module.tool(
    "catalogue.update_prices",
    title="Update prices",
    scope=WRITE,
    permission="catalogue.change_product",
    annotations={"destructive": True, "idempotent": True},
    danger=_is_large,
    max_items=shapes.MAX_CHANGES,
)
def update_prices(
    ctx: Context,
    *,
    changes: PriceChanges,
    reason: Annotated[str, Field(max_length=500, description="Why; kept in the history.")] = "",
) -> dict[str, Any]:
    """Set the prices of up to 500 products, all of them or none. Each product at most once; currencies stay as they are.

    More than 50 prices, or a change of more than 30 %, must be confirmed.
    """
    steps = history.plan_prices(changes, lock=True)
    history.apply(steps, field=Change.Field.PRICE, request_id=ctx.request_id or "", reason=reason)
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
    summary = f"Set {_counted('price', len(steps))}: {reason}" if reason else f"Set {_counted('price', len(steps))}."
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
    history.apply(steps, field=Change.Field.STOCK, request_id=ctx.request_id or "")
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
    summary = f"Adjust the stock of {_counted('product', len(steps))}."
    mark = fingerprint([step.product.sku for step in steps], {step.product.sku: step.product.stock for step in steps})
    return preview(summary, rows, totals=_directions(steps)), mark


@module.tool(
    "catalogue.delete_products",
    title="Delete products",
    scope=WRITE,
    permission="catalogue.delete_product",
    annotations={"destructive": True, "idempotent": False},
    danger="always",
    max_items=shapes.MAX_DELETED,
)
def delete_products(ctx: Context, *, skus: DeletedSkus) -> dict[str, Any]:
    """Delete up to 100 products for ever, all of them or none, with what visitors asked for. Must be confirmed. Their history stays."""
    steps = history.plan_deletion(skus, lock=True)
    history.delete(steps, request_id=ctx.request_id or "")
    ctx.log("catalogue.products_deleted", "product", "", {"products": len(steps)})
    return {"deleted": len(steps), "skus": skus}


@delete_products.preview
def preview_deletion(ctx: Context, *, skus: DeletedSkus) -> tuple[dict[str, Any], str]:
    products = [step.product for step in history.plan_deletion(skus, lock=False)]
    waiting = StockRequest.objects.count_by_product(products)
    rows = [
        row(
            str(product),
            "product",
            before=f"{shapes.money(product.price)} {product.currency}, {product.stock} in stock",
            note=f"{_counted('request', waiting[product.pk])} for stock" if product.pk in waiting else "",
        )
        for product in products
    ]
    totals = {
        "products": len(products),
        "pieces": sum(product.stock for product in products),
        "requests": sum(waiting.values()),
    }
    shown = preview(f"Delete {_counted('product', len(products))} for ever.", rows, totals=totals)
    values = {
        product.sku: [product.name, product.price, product.currency, product.stock, waiting.get(product.pk, 0)]
        for product in products
    }
    return shown, fingerprint(skus, values)


# --- Shared ----------------------------------------------------------------------------------------------------------


def _new_product(input: NewProduct, ctx: Context) -> Product:
    """The product that the input describes, not saved yet."""
    if Product.objects.filter(sku=input.sku).exists():
        raise _taken(input.sku)
    values = input.model_dump() | {
        "category": lookup.category(input.category),
        "currency": input.currency or _currency(ctx),
    }
    return Product(**values)


def _currency(ctx: Context) -> str:
    """The shop's. Whoever calls for a session may have none to say."""
    if ctx.currency is None:
        raise ToolError("validation_failed", "Name the currency of the price.", field="currency")
    return ctx.currency


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


def _counted(noun: str, number: int) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
