"""Changing products: planned alike for a preview and a run, written with one statement, recorded in the history."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from apps.api import ToolError
from apps.catalogue import lookup
from apps.catalogue.models import Change, Product, StockRequest
from apps.catalogue.shapes import PriceChange, StockChange


@dataclass(frozen=True, kw_only=True)
class Step:
    """What a product's price or stock is and would become; of one that comes or goes, its name."""

    product: Product
    before: Any
    after: Any


def plan_prices(changes: Sequence[PriceChange], *, lock: bool) -> list[Step]:
    """In the order of the input. Raises what `lookup.products` raises."""
    products = lookup.products([change.sku for change in changes], lock=lock)
    return [
        Step(product=products[change.sku], before=products[change.sku].price, after=change.price) for change in changes
    ]


def plan_stock(changes: Sequence[StockChange], *, lock: bool) -> list[Step]:
    """In the order of the input. Raises stock_below_zero, and what `lookup.products` raises."""
    products = lookup.products([change.sku for change in changes], lock=lock)
    steps = [
        Step(
            product=products[change.sku],
            before=products[change.sku].stock,
            after=products[change.sku].stock + change.delta,
        )
        for change in changes
    ]
    if short := [step.product.sku for step in steps if step.after < 0]:
        raise ToolError(
            "stock_below_zero", f"There is not enough stock of {lookup.listed(short)}.", skus=short[: lookup.MAX_NAMED]
        )
    return steps


def plan_deletion(skus: Sequence[str], *, lock: bool) -> list[Step]:
    """In the order of the input. Raises what `lookup.products` raises."""
    products = lookup.products(skus, lock=lock)
    return [Step(product=products[sku], before=products[sku].name, after="") for sku in skus]


def apply(steps: Sequence[Step], *, field: Change.Field, request_id: str, reason: str = "") -> None:
    """Write the planned values of locked products, and their history."""
    now = timezone.now()
    for step in steps:
        setattr(step.product, field, step.after)
        step.product.updated_at = now
    Product.objects.bulk_update([step.product for step in steps], [field, "updated_at"])
    record(steps, field=field, request_id=request_id, reason=reason)


def delete(steps: Sequence[Step], *, request_id: str) -> None:
    """Delete locked products with the requests for their stock. The history keeps the SKUs.

    Raises conflict for a request that came after this transaction saw its first state, and before the lock: nobody has
    seen it, and the database lets no product go while one points to it.
    """
    record(steps, field=Change.Field.PRODUCT, request_id=request_id)
    try:
        with transaction.atomic():
            Product.objects.filter(pk__in=[step.product.pk for step in steps]).delete()
            connection.check_constraints([StockRequest._meta.db_table])
    except IntegrityError:
        raise ToolError(
            "conflict",
            "Somebody asked for one of these products just now. Call again for a new preview.",
            reason="serialization",
        ) from None


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
