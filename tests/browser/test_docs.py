"""The API reference in a real browser: served from this host alone, its policy kept, and a typed key kept nowhere."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, expect

from apps.catalogue import demo
from tests.api import factories
from tests.services import Program

VENDORED = Path(settings.BASE_DIR) / "static/vendor"


@pytest.fixture
def program(transactional_db: None, start_program: Callable[..., Program]) -> Program:
    demo.fill()
    factories.set_setting("api_public_enabled", True)
    return start_program("uvicorn", DEBUG="1")


@pytest.fixture
def context(browser: Browser, program: Program) -> Iterator[BrowserContext]:
    """A phone with a dark screen: the narrowest of what must work."""
    opened = browser.new_context(base_url=program.url, viewport={"width": 390, "height": 844}, color_scheme="dark")
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, said: list[str]) -> Page:
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    return page


def show_with_key(page: Page) -> str:
    _, text = factories.make_key(scopes=["catalogue:read"])
    page.goto("/api/v1/docs")
    page.get_by_label("API key").fill(text)
    page.get_by_role("button", name="Show its tools").click()
    expect(page.get_by_role("status")).to_contain_text("Shown: what your key may call")
    return text


def call_get_product(page: Page) -> None:
    tool = page.locator(".opblock", has_text="/api/v1/tools/catalogue.get_product")
    tool.locator(".opblock-summary-control").click()
    tool.get_by_role("button", name="Try it out").click()
    tool.locator("textarea").fill('{"sku": "LMP-0002"}')
    tool.get_by_role("button", name="Execute").click()
    expect(tool.locator(".live-responses-table")).to_contain_text("Harbour desk lamp")


def test_a_person_reads_the_tools_of_a_key_and_calls_one(page: Page, said: list[str]) -> None:
    hosts: set[str] = set()
    page.on("request", lambda request: hosts.add(urlsplit(request.url).netloc))
    show_with_key(page)
    call_get_product(page)
    assert hosts - {""} == {urlsplit(page.url).netloc}
    assert said == []


def test_a_typed_key_is_kept_nowhere(page: Page, context: BrowserContext) -> None:
    text = show_with_key(page)
    call_get_product(page)
    assert text not in page.content()
    assert page.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]
    assert context.cookies() == []
    page.reload()
    assert page.get_by_label("API key").input_value() == ""


def test_a_key_that_opens_nothing_is_told_so(page: Page) -> None:
    page.goto("/api/v1/docs")
    page.get_by_label("API key").fill("th_test_nothing")
    page.get_by_role("button", name="Show its tools").click()
    expect(page.get_by_role("alert")).to_contain_text("This key opens nothing here")


def test_where_visitors_have_no_tools_the_page_asks_for_a_key(page: Page) -> None:
    factories.set_setting("api_public_enabled", False)
    page.goto("/api/v1/docs")
    expect(page.get_by_role("alert")).to_contain_text("Enter a key")


def test_the_page_fits_a_phone_and_follows_the_dark_screen(page: Page) -> None:
    show_with_key(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert "dark-mode" in page.evaluate("document.documentElement.className").split()


def test_what_is_vendored_is_what_its_publisher_gave() -> None:
    for described in VENDORED.glob("*/vendored.json"):
        wanted = json.loads(described.read_text())["sha256"]
        files = {file.name: file for file in described.parent.iterdir() if file.name != "vendored.json"}
        assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()} == wanted
        assert "LICENSE" in files
