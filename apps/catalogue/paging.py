"""Pages in the order of the SKUs, each continued after the last SKU of the one before: steady while products come and go."""

import base64
import re

from apps.api import ToolError
from apps.catalogue.models import SKU_PATTERN, Product, ProductQuerySet


def page(products: ProductQuerySet, *, cursor: str | None, limit: int) -> tuple[list[Product], str | None]:
    """At most `limit` products after the cursor, and the cursor of the next page, if there is one."""
    rows = products.order_by("sku")
    if cursor is not None:
        rows = rows.filter(sku__gt=_decoded(cursor))
    found = list(rows[: limit + 1])
    return found[:limit], _encoded(found[limit - 1].sku) if len(found) > limit else None


def _encoded(sku: str) -> str:
    return base64.urlsafe_b64encode(sku.encode()).decode()


def _decoded(cursor: str) -> str:
    try:
        sku = base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except ValueError:
        sku = ""
    if re.fullmatch(SKU_PATTERN, sku) is None:
        fault = {"pointer": "/cursor", "message": "This is no next_cursor of this tool."}
        raise ToolError("validation_failed", "The input does not fit the tool's schema.", errors=[fault])
    return sku
