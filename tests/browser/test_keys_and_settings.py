"""Keys and problem pages as a person uses them, in a real browser and under the site's policies."""

from contextlib import suppress

import pytest
from playwright.sync_api import Error, Page

from apps.api import key_text
from apps.api.models import ApiKey
from tests.api import factories
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
LIST, ADD, SETTINGS = "/admin/api/apikey/", "/admin/api/apikey/add/", "/admin/api/setting/"


def shown(page: Page) -> str:
    """The page's HTML, after a step that the browser may still be at: unlike `content`, a locator waits for its end."""
    return page.locator("html").inner_html()


def test_a_new_key_is_copied_once_and_gone_after_that(page: Page, program: Program, said: list[str]) -> None:
    page.goto(ADD)
    page.fill("input[name=name]", "Nightly prices")
    page.check("input[value='catalogue:read']")
    page.click("input[name=_save]")

    text = page.inner_text("#key-text")
    page.click("text=Copy the key")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == text
    assert key_text.public_id(text) == ApiKey.objects.get().public_id
    assert text not in page.url

    secret = text.split("_")[3]
    assert secret not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    page.click("text=I have copied it")
    page.wait_for_url("**/change/")
    assert secret not in page.content()
    with suppress(Error):  # the browser kept no page and asks before it sends the form again
        page.go_back()
    page.wait_for_load_state()
    assert secret not in shown(page)
    assert secret not in program.log()
    assert (ApiKey.objects.count(), said) == (1, [])


def test_a_reload_of_the_page_that_shows_a_key_shows_none(page: Page) -> None:
    page.goto(ADD)
    page.fill("input[name=name]", "Nightly prices")
    page.click("input[name=_save]")
    page.wait_for_selector("#key-text")
    with suppress(Error):
        page.reload()
    page.wait_for_load_state()
    assert not key_text.PATTERN.search(shown(page))
    assert ApiKey.objects.count() == 1


def test_a_pasted_key_is_found_and_revoked_after_a_question(page: Page, said: list[str]) -> None:
    key, text = factories.make_key(name="Leaked somewhere")
    factories.make_key(name="Another one")
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))

    page.goto(LIST)
    page.fill("#searchbar", text)
    page.press("#searchbar", "Enter")
    page.click("text=Leaked somewhere")
    page.click("text=Revoke")
    page.click("button:has-text('Revoke')")

    page.wait_for_selector("text=1 key revoked.")
    assert "Another one" not in page.content()
    assert not [address for address in addresses if text.split("_")[3] in address]
    assert ApiKey.objects.exclude(revoked_at=None).get() == key
    assert said == []


def test_no_page_is_wider_than_the_window_or_breaks_its_policy(page: Page, said: list[str]) -> None:
    key, _ = factories.make_key(scopes=["catalogue:read"], networks=["192.0.2.0/24"])
    change = f"{LIST}{key.pk}/change/"
    wide = []
    for address in (
        LIST,
        ADD,
        change,
        f"{LIST}{key.pk}/revoke/",
        SETTINGS,
        "/problems/not_found",
        "/problems/sku_taken/",
    ):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                wide.append((address, width))
    assert (wide, said) == ([], [])
