"""Who reads German gets German, on a phone too: the longer words fit."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.browser.chatting import watched
from tests.browser.signing_in import PASSWORD
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)

WIDTHS = (1280, 360)


@pytest.fixture
def german(browser: Browser, chat_program: Program, member: Any, said: list[str]) -> Iterator[Page]:
    """Signed in, in German."""
    context: BrowserContext = browser.new_context(base_url=chat_program.url, locale="de-DE")
    page = watched(context.new_page(), said, [])
    page.goto("/chat/")
    page.get_by_label("E-Mail-Adresse").fill(member.email)
    page.get_by_label("Passwort").fill(PASSWORD)
    page.get_by_role("button", name="Anmelden").click()
    expect(page.locator("[data-send]")).to_be_enabled()
    yield page
    context.close()


def _fits(page: Page) -> None:
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 740})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), f"too wide at {width}"


def test_the_chat_is_german_and_fits_a_phone(german: Page, said: list[str]) -> None:
    expect(german.locator("html")).to_have_attribute("lang", "de")
    expect(german.get_by_label("Ihre Nachricht")).to_be_visible()
    expect(german.get_by_role("button", name="Senden")).to_be_visible()
    _fits(german)
    assert said == []


def test_the_sessions_are_german_and_fit_a_phone(german: Page) -> None:
    german.goto("/account/sessions/")
    expect(german.locator("html")).to_have_attribute("lang", "de")
    expect(german.get_by_role("heading", level=1)).to_contain_text("Sitzungen")
    _fits(german)
