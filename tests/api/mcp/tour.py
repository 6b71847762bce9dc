"""What every official client does in one session: look, be refused, write what is dangerous, and write the same twice."""

from apps.catalogue.models import Product
from tests.api.mcp.live import ASKING, SILENT, WAYS, Session
from tests.catalogue.factories import make_product


def take(session: Session) -> None:
    """The whole tour, at the end of which the session goes on."""
    assert session.told["version"] == WAYS[session.how]
    if session.how != SILENT:
        assert "confirm_token" in session.told["instructions"]
    look(session)
    delete(session)
    write_twice(session)
    assert session.content("system_whoami")["key"]["name"] == "machine"


def look(session: Session) -> None:
    """A list and a read; a refusal and an unknown tool are results, after which the session goes on."""
    assert {"catalogue_list_products", "catalogue_delete_products", "system_whoami"} <= set(session.tools())
    product = make_product(name="Лампа 照明 مصباح 🧾")
    assert session.content("catalogue_get_product", sku=product.sku)["name"] == product.name
    assert session.problem("catalogue_list_products", nope=1)["code"] == "validation_failed"
    assert session.problem("no_such_tool")["code"] == "not_found"


def delete(session: Session) -> None:
    """A dangerous write: a client that can ask its person is asked, any other one gets a code; nothing runs before."""
    product = make_product()
    if session.how in ASKING:
        held = session.call("catalogue_delete_products", skus=[product.sku])
        assert [product.sku in question for question in held["asked"]] == [True]
        assert held["structuredContent"] == {"deleted": 1, "skus": [product.sku]}
    else:
        code = session.content("catalogue_delete_products", skus=[product.sku])["confirm_token"]
        assert Product.objects.filter(pk=product.pk).exists()
        done = session.content("catalogue_delete_products", skus=[product.sku], confirm_token=code)
        assert done == {"deleted": 1, "skus": [product.sku]}
        again = session.problem("catalogue_delete_products", skus=[product.sku], confirm_token=code)
        assert (again["code"], again["reason"]) == ("confirm_token_invalid", "used")
    assert not Product.objects.filter(pk=product.pk).exists()


def write_twice(session: Session) -> None:
    """With an idempotency key the second answer is the first one's, and says so."""
    product = make_product(stock=10)
    given = {"changes": [{"sku": product.sku, "delta": 3}], "idempotency_key": f"tour-{product.sku}"}
    first, second = (session.call("catalogue_adjust_stock", **given) for _ in range(2))
    assert first["structuredContent"]["adjusted"] == 1
    assert second["content"] == first["content"]
    assert second["_meta"]["Idempotent-Replayed"] is True
    product.refresh_from_db()
    assert product.stock == 13
