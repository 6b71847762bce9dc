"""Mail to suppliers. It can't be taken back, so a person's word stands before it, and a call that may have sent it is not repeated."""

from typing import Annotated, Any

from pydantic import Field, StringConstraints

from apps.api import Context, fingerprint, preview, row
from apps.catalogue import letters, shapes
from apps.catalogue.shapes import MailedSkus
from apps.catalogue.tools.declaration import WRITE, module

Message = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=5_000),
    Field(description="What the supplier is to read, below the list of the products."),
]


@module.tool(
    "catalogue.notify_supplier",
    title="Notify a supplier",
    scope=WRITE,
    permission="catalogue.change_product",
    reach="external",
    danger="always",
    max_items=shapes.MAX_IN_A_MAIL,
)
def notify_supplier(ctx: Context, *, skus: MailedSkus, message: Message) -> dict[str, Any]:
    """Send one e-mail about up to 50 products to the supplier of their categories: one supplier a call. Must be confirmed."""
    letter = letters.draft(skus, message)
    letter.send(request_id=ctx.request_id or "")
    ctx.log("catalogue.supplier_notified", "product", "", {"products": len(skus)})
    return {"sent_to": letter.to, "subject": letter.subject}


@notify_supplier.preview
def preview_letter(ctx: Context, *, skus: MailedSkus, message: Message) -> tuple[dict[str, Any], str]:
    letter = letters.draft(skus, message)
    values = {"to": letter.to, "subject": letter.subject, "text": letter.text}
    rows = [row("E-mail", field, after=value) for field, value in values.items()]
    shown = preview(f"Send an e-mail to {letter.to}.", rows, totals={"products": len(skus), "e-mails": 1})
    return shown, fingerprint(values, values)
