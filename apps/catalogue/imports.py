"""A list of products against those that there are: planned alike for a preview and a run, written in parts, recorded in the history."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from django.db import IntegrityError
from django.utils import timezone

from apps.api import ToolError
from apps.catalogue import lookup, shapes
from apps.catalogue.models import Category, Change, Product
from apps.catalogue.shapes import NewProduct

PART = 100
FIELDS = ("name", "category", "price", "currency", "stock", "description")


@dataclass(frozen=True, kw_only=True)
class FieldChange:
    field: str
    before: Any
    after: Any


@dataclass(frozen=True, kw_only=True)
class Step:
    """What becomes of one product. `before` are its values now, None for a new one."""

    product: Product
    before: dict[str, Any] | None
    changes: tuple[FieldChange, ...]

    @property
    def kind(self) -> Literal["created", "updated", "unchanged"]:
        if self.before is None:
            return "created"
        return "updated" if self.changes else "unchanged"


def plan(rows: Sequence[NewProduct], *, currency: str | None, lock: bool) -> list[Step]:
    """In the order of the input, the products with their new values set and not saved. Raises duplicate_sku and unknown_category."""
    if repeated := [sku for sku, times in Counter(row.sku for row in rows).items() if times > 1]:
        raise ToolError("duplicate_sku", f"Named more than once: {lookup.listed(repeated)}.", skus=repeated[:20])
    categories = _categories(rows)
    known = Product.objects.filter(sku__in=[row.sku for row in rows]).select_related("category").order_by("sku")
    found = {product.sku: product for product in (known.select_for_update(of=("self",)) if lock else known)}
    return [_step(row, found.get(row.sku), categories[row.category], currency) for row in rows]


def _step(row: NewProduct, product: Product | None, category: Category, currency: str | None) -> Step:
    before = None if product is None else shapes.given(product)
    product = Product(sku=row.sku) if product is None else product
    values = {**row.model_dump(), "category": category, "currency": row.currency or product.currency or currency}
    if values["currency"] is None:
        raise ToolError("validation_failed", "Name the currency of the prices.", field="currency")
    for name in FIELDS:
        setattr(product, name, values[name])
    after = shapes.given(product)
    changes = [
        FieldChange(field=name, before=None if before is None else before[name], after=after[name])
        for name in FIELDS
        if before is None or before[name] != after[name]
    ]
    return Step(product=product, before=before, changes=tuple(changes))


def _categories(rows: Sequence[NewProduct]) -> dict[str, Category]:
    wanted = {row.category for row in rows}
    found = {category.slug: category for category in Category.objects.filter(slug__in=wanted).order_by("slug")}
    if unknown := sorted(wanted - set(found)):
        raise ToolError("unknown_category", f"There is no category {lookup.listed(unknown)}.", categories=unknown[:20])
    return found


def apply(steps: Sequence[Step], *, request_id: str) -> None:
    """Write the planned values, and the history. Raises sku_taken when somebody else created one of them meanwhile."""
    now = timezone.now()
    changed = [step.product for step in steps if step.kind == "updated"]
    folding = Product._meta.get_field("search_text")
    for product in changed:
        product.updated_at = now
        folding.pre_save(product, add=False)  # a bulk update asks no field
    try:
        Product.objects.bulk_create([step.product for step in steps if step.kind == "created"])
    except IntegrityError:
        raise ToolError("sku_taken", "Somebody created one of these products just now. Call again.") from None
    Product.objects.bulk_update(changed, [*FIELDS, "search_text", "updated_at"])
    Change.objects.bulk_create(change for step in steps for change in _history(step, request_id))


def _history(step: Step, request_id: str) -> list[Change]:
    """A row for each field that the history knows; the creation of a product is one."""
    if step.before is None:
        return [_row(step, Change.Field.PRODUCT, "", step.product.name, request_id)]
    own = [change for change in step.changes if change.field in Change.Field.values]
    found = [_row(step, Change.Field(change.field), change.before, change.after, request_id) for change in own]
    if len(own) < len(step.changes):
        found.append(_row(step, Change.Field.PRODUCT, step.before["name"], step.product.name, request_id))
    return found


def _row(step: Step, field: Change.Field, before: Any, after: Any, request_id: str) -> Change:
    return Change(
        product=step.product,
        sku=step.product.sku,
        field=field,
        before=str(before),
        after=str(after),
        reason="import",
        request_id=request_id,
    )
