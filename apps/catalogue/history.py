"""Changing products: planned alike for a preview and a run, written with one statement, recorded in the history."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils import timezone

from apps.api import ToolError
from apps.catalogue.models import Change, Product
from apps.catalogue.shapes import PriceChange, StockChange

MAX_NAMED = 20


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a product's price or stock is and would become."""

    product: Product
    before: Any
    after: Any


def plan_prices(changes: Sequence[PriceChange], *, lock: bool) -> list[Step]:
    """In the order of the input. Raises what `_find` raises."""
    products = _find([change.sku for change in changes], lock=lock)
    return [
        Step(product=products[change.sku], before=products[change.sku].price, after=change.price) for change in changes
    ]


def plan_stock(changes: Sequence[StockChange], *, lock: bool) -> list[Step]:
    """In the order of the input. Raises stock_below_zero, and what `_find` raises."""
    products = _find([change.sku for change in changes], lock=lock)
    steps = [
        Step(
            product=products[change.sku],
            before=products[change.sku].stock,
            after=products[change.sku].stock + change.delta,
        )
        for change in changes
    ]
    if short := [step.product.sku for step in steps if step.after < 0]:
        raise ToolError("stock_below_zero", f"There is not enough stock of {_listed(short)}.", skus=short[:MAX_NAMED])
    return steps


def apply(steps: Sequence[Step], *, field: Change.Field, request_id: str, reason: str = "") -> None:
    """Write the planned values of locked products, and their history."""
    now = timezone.now()
    for step in steps:
        setattr(step.product, field, step.after)
        step.product.updated_at = now
    Product.objects.bulk_update([step.product for step in steps], [field, "updated_at"])
    record(steps, field=field, request_id=request_id, reason=reason)


def record(steps: Iterable[Step], *, field: Change.Field, request_id: str, reason: str = "") -> None:
    """A row of history for each step, also where the value stays as it was: what ran twice shows twice."""
    Change.objects.bulk_create(
        Change(
            product=step.product,
            sku=step.product.sku,
            field=field,
            before="" if step.before is None else str(step.before),
            after=str(step.after),
            reason=reason,
            request_id=request_id,
        )
        for step in steps
    )


def _find(skus: Sequence[str], *, lock: bool) -> dict[str, Product]:
    """The products by SKU, from one query. Raises duplicate_sku and unknown_sku.

    With `lock` their rows stay locked until the transaction ends, taken in the order of the SKUs: two callers never wait
    for each other in a circle. A preview does without: it may write nothing, and a lock is a write.
    """
    if repeated := [sku for sku, times in Counter(skus).items() if times > 1]:
        raise ToolError("duplicate_sku", f"Named more than once: {_listed(repeated)}.", skus=repeated[:MAX_NAMED])
    rows = Product.objects.filter(sku__in=skus).order_by("sku")
    found = {product.sku: product for product in (rows.select_for_update() if lock else rows)}
    if unknown := [sku for sku in skus if sku not in found]:
        raise ToolError("unknown_sku", f"There is no product {_listed(unknown)}.", skus=unknown[:MAX_NAMED])
    return found


def _listed(skus: Sequence[str]) -> str:
    more = len(skus) - MAX_NAMED
    return ", ".join(skus[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
