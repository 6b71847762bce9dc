"""Bringing a list of products in: new ones are created, known ones get the values of the list."""

from collections.abc import Iterator, Sequence
from typing import Any

from apps.api import Context, fingerprint, preview, row
from apps.catalogue import imports, shapes
from apps.catalogue.shapes import ImportedProducts
from apps.catalogue.tools.declaration import WRITE, module


@module.tool(
    "catalogue.import_products",
    title="Import products",
    scope=WRITE,
    permission="catalogue.add_product",
    annotations={"destructive": True, "idempotent": True},
    danger="always",
    max_items=shapes.MAX_IMPORTED,
)
def import_products(ctx: Context, *, rows: ImportedProducts) -> dict[str, Any]:
    """Create or update up to 2,000 products, all of them or none, each SKU once. Must be confirmed; tells how far it came."""
    counts = {"created": 0, "updated": 0, "unchanged": 0}
    done = 0
    for part in _parts(imports.plan(rows, currency=ctx.currency, lock=True)):
        imports.apply(part, request_id=ctx.request_id or "")
        for step in part:
            counts[step.kind] += 1
        done += len(part)
        ctx.progress({"done": done, "total": len(rows), **counts})
    ctx.log("catalogue.products_imported", "product", "", {"products": len(rows)})
    return {"imported": len(rows), **counts}


@import_products.preview
def preview_import(ctx: Context, *, rows: ImportedProducts) -> tuple[dict[str, Any], str]:
    steps = imports.plan(rows, currency=ctx.currency, lock=False)
    shown = [
        row(str(step.product), change.field, before=change.before, after=change.after)
        for step in steps
        for change in step.changes
    ]
    kinds = [step.kind for step in steps]
    totals = {kind: kinds.count(kind) for kind in ("created", "updated", "unchanged")}
    number = len(rows)
    summary = f"Import {number} {'product' if number == 1 else 'products'}."
    seen = {step.product.sku: step.before for step in steps if step.before is not None}
    return preview(summary, shown, totals=totals), fingerprint([entry.sku for entry in rows], seen)


def _parts(steps: Sequence[imports.Step]) -> Iterator[Sequence[imports.Step]]:
    for start in range(0, len(steps), imports.PART):
        yield steps[start : start + imports.PART]
