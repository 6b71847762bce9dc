"""What a supplier is sent: a letter about some products, the same in a preview and in the mail."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.core.mail import EmailMessage

from apps.api import ToolError
from apps.catalogue import lookup
from apps.catalogue.models import Category, Product


@dataclass(frozen=True, kw_only=True)
class Letter:
    """The subject holds SKUs and numbers alone: what a caller or a person typed stands in the text, where no header can be."""

    to: str
    subject: str
    text: str

    def send(self, *, request_id: str) -> None:
        """Hand it to the mail server. The reference tells the operator which call it came from."""
        text = f"{self.text}\n\nReference: {request_id}\n"
        EmailMessage(subject=self.subject, body=text, to=[self.to]).send()


def draft(skus: Sequence[str], message: str) -> Letter:
    """Raises no_supplier, several_suppliers, and what `lookup.products` raises."""
    products = lookup.products(skus, lock=False)
    names = [f"- {products[sku]}" for sku in skus]
    more = f" and {len(skus) - 1} more" if len(skus) > 1 else ""
    return Letter(
        to=_supplier(products),
        subject=f"About {skus[0]}{more}",
        text="\n".join(["Products:", *names, "", message]),
    )


def _supplier(products: Mapping[str, Product]) -> str:
    """The one address of all the products' categories."""
    categories = Category.objects.in_bulk({product.category_id for product in products.values()})
    address = {sku: categories[product.category_id].supplier_email for sku, product in products.items()}
    if without := [sku for sku, email in address.items() if not email]:
        raise ToolError(
            "no_supplier",
            f"There is no supplier's address for {lookup.listed(without)}.",
            skus=without[: lookup.MAX_NAMED],
        )
    found = sorted(set(address.values()))
    if len(found) > 1:
        raise ToolError("several_suppliers", "These products come from several suppliers. Call once for each.")
    return found[0]
