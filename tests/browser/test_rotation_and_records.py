"""Rotating a key and settling an outcome as a person does it, in a real browser and under the site's policies."""

import pytest
from playwright.sync_api import Page

from apps.api import key_text
from apps.api.models import ApiKey, IdempotencyRecord
from tests.api import factories
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
KEYS, RECORDS, CONFIRMATIONS = "/admin/api/apikey/", "/admin/api/idempotencyrecord/", "/admin/api/confirmation/"
UNKNOWN = IdempotencyRecord.State.UNKNOWN


def test_a_double_click_rotates_once_and_shows_the_text(page: Page, program: Program, said: list[str]) -> None:
    key, _ = factories.make_key(name="Nightly prices")
    page.goto(f"{KEYS}{key.pk}/change/")
    page.click("text=Rotate")
    page.check("text=7 days")
    page.dblclick("button:has-text('Rotate')")

    text = page.inner_text("#key-text")
    successor = ApiKey.objects.get(predecessor=key)
    assert key_text.public_id(text) == successor.public_id
    page.click("text=I have copied it")
    page.wait_for_url(f"**/{successor.pk}/change/")
    page.click(f"a:has-text('{key.public_id}')")
    page.wait_for_url(f"**/{key.pk}/change/")
    assert "both work" in page.inner_text(".th-note")
    assert text.split("_")[3] not in page.content() + program.log()
    assert (ApiKey.objects.count(), said) == (2, [])


def test_an_unknown_outcome_is_found_from_the_first_page_and_settled(page: Page, said: list[str]) -> None:
    record = factories.make_record(state=UNKNOWN, external=True, key="nightly 7")
    factories.make_record(key="another one")
    page.goto("/admin/")
    page.click("text=Show unknown outcomes")
    assert "another one" not in page.content()
    page.click("th.field-tool a")
    page.click("text=It did not happen")
    assert "a second time" in page.inner_text("#content")
    page.click("button:has-text('It did not happen')")
    page.wait_for_selector("text=1 outcome settled.")
    assert not IdempotencyRecord.objects.filter(pk=record.pk).exists()
    assert said == []


def test_no_page_is_wider_than_the_window_or_breaks_its_policy(page: Page, said: list[str]) -> None:
    key, _ = factories.make_key()
    record = factories.make_record(state=UNKNOWN, key="k" * 255, request_id="r" * 64)
    confirmation = factories.make_confirmation(request_id="r" * 64)
    wide = []
    for address in (
        "/admin/",
        f"{KEYS}{key.pk}/rotate/",
        RECORDS,
        f"{RECORDS}{record.pk}/change/",
        f"{RECORDS}{record.pk}/happened/",
        CONFIRMATIONS,
        f"{CONFIRMATIONS}{confirmation.pk}/change/",
        "/problems/conflict",
    ):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                wide.append((address, width))
    assert (wide, said) == ([], [])
