"""The API reference in a real browser: served from this host alone, its policy kept, and a typed key kept nowhere."""

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, expect

from apps.catalogue import demo
from tests.api import factories
from tests.browser import axe
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


def test_it_is_read_and_called_with_the_keyboard_alone(page: Page) -> None:
    _, text = factories.make_key(scopes=["catalogue:read"])
    page.goto("/api/v1/docs")
    page.locator(".opblock").first.wait_for()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.type(text)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status")).to_contain_text("Shown: what your key may call")
    tool = page.locator(".opblock", has_text="/api/v1/tools/system.whoami")
    for name in ("POST", "Try it out", "Execute"):
        tool.get_by_role("button", name=name).first.focus()
        page.keyboard.press("Enter")
    expect(tool.locator(".live-responses-table")).to_contain_text("requires_approval")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out_by_our_part_of_the_page(browser: Browser, program: Program, scheme: Any) -> None:
    """Of the reader inside, the rules for what can be named and told apart hold; its own colours are its publisher's."""
    opened = browser.new_context(base_url=program.url, color_scheme=scheme, bypass_csp=True)
    page = opened.new_page()
    show_with_key(page)
    page.locator(".opblock", has_text="catalogue.update_prices").or_(
        page.locator(".opblock", has_text="catalogue.get_product")
    ).first.locator(".opblock-summary-control").click()
    page.locator(".examples-select select").first.wait_for()
    assert axe.violations(page, within="body", but="#reader") == []
    named = axe.violations(page, within="#reader", rules=["select-name", "button-name", "link-name", "label"])
    opened.close()
    assert named == []


def test_an_idempotency_key_is_not_sent_with_what_is_tried_out(page: Page) -> None:
    _, text = factories.make_key(scopes=["catalogue:read", "catalogue:write"])
    page.goto("/api/v1/docs")
    page.get_by_label("API key").fill(text)
    page.get_by_role("button", name="Show its tools").click()
    tool = page.locator(".opblock", has_text="/api/v1/tools/catalogue.update_prices")
    tool.locator(".opblock-summary-control").click()
    tool.get_by_role("button", name="Try it out").click()
    expect(tool.get_by_placeholder("Idempotency-Key")).to_have_value("")


def test_what_is_vendored_is_what_its_publisher_gave() -> None:
    for described in VENDORED.glob("*/vendored.json"):
        wanted = json.loads(described.read_text())["sha256"]
        files = {file.name: file for file in described.parent.iterdir() if file.name != "vendored.json"}
        assert {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in files.items()} == wanted
        assert "LICENSE" in files
