"""Mail to suppliers: once, after a confirmation, to the address that was shown, and with no header that a caller wrote."""

import smtplib
from email import message_from_bytes
from typing import Any

import pytest
from django.core import mail

from apps.activity.models import Entry
from apps.api.models import IdempotencyRecord
from apps.catalogue.models import Category
from tests.api.factories import Machine
from tests.catalogue.factories import make_category, make_product
from tests.catalogue.prompts import confirmed, prompt

pytestmark = pytest.mark.sqlite

TOOL = "catalogue.notify_supplier"


def _body(*skus: str, message: str = "Please send 20 of each.", **more: Any) -> dict[str, Any]:
    return {"skus": list(skus), "message": message, **more}


def test_a_mail_is_sent_once_and_only_with_the_code(writer: Machine) -> None:
    make_product(sku="A", name="Reed lamp")
    code = prompt(writer, "notify_supplier", _body("A"))["confirm_token"]
    assert not mail.outbox
    answer = writer.call(TOOL, _body("A", confirm_token=code))
    assert answer.json() == {"sent_to": "lamps@example.org", "subject": "About A"}
    assert writer.call(TOOL, _body("A", confirm_token=code)).json()["reason"] == "used"
    (sent,) = mail.outbox
    assert (sent.to, sent.cc, sent.bcc) == (["lamps@example.org"], [], [])
    assert sent.body == (
        f"Products:\n- A Reed lamp\n\nPlease send 20 of each.\n\nReference: {answer.headers['X-Request-ID']}\n"
    )


def test_the_prompt_shows_the_mail(writer: Machine) -> None:
    for sku in ("A", "B", "C"):
        make_product(sku=sku, name="Lamp")
    shown = prompt(writer, "notify_supplier", _body("B", "A", "C"))["preview"]
    assert {row["field"]: row["after"] for row in shown["rows"]} == {
        "to": "lamps@example.org",
        "subject": "About B and 2 more",
        "text": "Products:\n- B Lamp\n- A Lamp\n- C Lamp\n\nPlease send 20 of each.",
    }


@pytest.mark.parametrize("change", [{"supplier_email": "other@example.org"}, {"supplier_email": ""}])
def test_an_address_that_changed_in_between_gets_nothing_unasked(writer: Machine, change: dict[str, Any]) -> None:
    make_product(sku="A")
    code = prompt(writer, "notify_supplier", _body("A"))["confirm_token"]
    Category.objects.update(**change)
    again = writer.call(TOOL, _body("A", confirm_token=code)).json()
    assert again.get("reason") == "changed" or again["code"] == "no_supplier"
    assert not mail.outbox


def test_a_mail_leaves_entries_without_its_text(writer: Machine) -> None:
    make_product(sku="A")
    confirmed(writer, "notify_supplier", _body("A", message="A secret discount"))
    assert Entry.objects.get(action="catalogue.supplier_notified").metadata["products"] == 1
    assert "secret" not in str(list(Entry.objects.values()))


def test_a_repeat_with_the_key_sends_nothing_again(writer: Machine) -> None:
    make_product(sku="A")
    body = _body("A", idempotency_key="reorder")
    first = confirmed(writer, "notify_supplier", body)
    again = writer.call(TOOL, body)
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert len(mail.outbox) == 1


def test_a_mail_server_that_breaks_off_leaves_the_outcome_unknown(
    writer: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_product(sku="A")
    code = prompt(writer, "notify_supplier", _body("A"))["confirm_token"]

    def break_off(self: Any, messages: Any) -> int:
        raise smtplib.SMTPServerDisconnected

    monkeypatch.setattr("django.core.mail.backends.locmem.EmailBackend.send_messages", break_off)
    body = _body("A", confirm_token=code, idempotency_key="reorder")
    writer.call(TOOL, body)
    monkeypatch.undo()
    assert writer.call(TOOL, body).json()["code"] == "idempotency_outcome_unknown"
    assert IdempotencyRecord.objects.get(key="reorder").state == "unknown"
    assert not mail.outbox


# --- Who is written to ------------------------------------------------------------------------------------------------


def test_categories_that_share_a_supplier_share_a_mail(writer: Machine) -> None:
    make_product(sku="A")
    make_product(sku="B", category=make_category(slug="mugs"))
    Category.objects.update(supplier_email="both@example.org")
    assert confirmed(writer, "notify_supplier", _body("A", "B")).json()["sent_to"] == "both@example.org"


def test_products_of_several_suppliers_are_refused(writer: Machine) -> None:
    make_product(sku="A")
    make_product(sku="B", category=make_category(slug="mugs"))
    assert writer.call(TOOL, _body("A", "B")).json()["code"] == "several_suppliers"


def test_products_without_a_supplier_are_named(writer: Machine) -> None:
    make_product(sku="A")
    make_product(sku="B", category=Category.objects.create(slug="mugs", name="Mugs"))
    answer = writer.call(TOOL, _body("A", "B")).json()
    assert (answer["code"], answer["skus"]) == ("no_supplier", ["B"])


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (_body("X"), "unknown_sku"),
        (_body("A", "A"), "duplicate_sku"),
        (_body("A\nBcc: x@example.org"), "validation_failed"),
        (_body("A", message=" \n "), "validation_failed"),
        (_body("A", message="x" * 5_001), "validation_failed"),
        (_body(*(f"X-{number}" for number in range(51))), "too_many_items"),
        (_body(), "validation_failed"),
    ],
)
def test_what_is_no_letter_is_refused(writer: Machine, body: dict[str, Any], code: str) -> None:
    make_product(sku="A")
    assert writer.call(TOOL, body).json()["code"] == code


@pytest.mark.parametrize("injected", ["Bcc: thief@example.org", "\r\nBcc: thief@example.org\r\n\r\nHello"])
def test_what_a_person_typed_makes_no_header(writer: Machine, injected: str) -> None:
    make_product(sku="A", name=f"Lamp\n{injected}")
    confirmed(writer, "notify_supplier", _body("A", message=f"Hello\n{injected}\nSubject: Mine"))
    parsed = message_from_bytes(mail.outbox[0].message().as_bytes())
    assert mail.outbox[0].recipients() == ["lamps@example.org"]
    assert (parsed["To"], parsed["Bcc"], parsed["Subject"]) == ("lamps@example.org", None, "About A")
