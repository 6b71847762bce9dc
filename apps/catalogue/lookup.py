"""Products and categories by the names that a call gave, or the refusal that says which of them do not exist."""

from collections import Counter
from collections.abc import Sequence

from apps.api import ToolError
from apps.catalogue.models import Category, Product

MAX_NAMED = 20


def product(sku: str) -> Product:
    """The product with its category. Raises unknown_sku."""
    try:
        return Product.objects.select_related("category").get(sku=sku)
    except Product.DoesNotExist:
        raise ToolError("unknown_sku", f"There is no product {sku}.", skus=[sku]) from None


def products(skus: Sequence[str], *, lock: bool) -> dict[str, Product]:
    """The products by SKU, from one query. Raises duplicate_sku and unknown_sku.

    With `lock` their rows stay locked until the transaction ends, taken in the order of the SKUs: two callers never wait
    for each other in a circle. A preview does without: it may write nothing, and a lock is a write.
    """
    if repeated := [sku for sku, times in Counter(skus).items() if times > 1]:
        raise ToolError("duplicate_sku", f"Named more than once: {listed(repeated)}.", skus=repeated[:MAX_NAMED])
    rows = Product.objects.filter(sku__in=skus).order_by("sku")
    found = {row.sku: row for row in (rows.select_for_update() if lock else rows)}
    if unknown := [sku for sku in skus if sku not in found]:
        raise ToolError("unknown_sku", f"There is no product {listed(unknown)}.", skus=unknown[:MAX_NAMED])
    return found


def category(slug: str) -> Category:
    """Raises unknown_category, which names those that exist."""
    found = Category.objects.filter(slug=slug).first()
    if found is None:
        known = list(Category.objects.order_by("slug").values_list("slug", flat=True)[:100])
        raise ToolError("unknown_category", "There is no such category.", categories=known)
    return found


def listed(skus: Sequence[str]) -> str:
    """The first SKUs in a sentence, and how many more there are."""
    more = len(skus) - MAX_NAMED
    return ", ".join(skus[:MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
