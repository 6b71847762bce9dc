"""The chat in a real browser, as a person drives it: who they are, what they write, and where it shows."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Locator, Page, expect

from apps.agent import access
from tests.browser.signing_in import PASSWORD

RIGHTS = (
    access.PERMISSION,
    *(f"catalogue.{verb}_product" for verb in ("view", "change", "add", "delete")),
)

# Opens the chat in a browser of its own; see the fixture `browse`.
Open = Callable[..., Page]


def watched(page: Page, said: list[str], visited: list[str]) -> Page:
    """What it says of policies and scripts, and whom it asks, is kept."""
    page.on("console", lambda message: said.append(message.text) if "Security Policy" in message.text else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: visited.append(request.url))
    return page


def sign_in(page: Page, address: str, person: Any) -> Page:
    page.goto(address)
    page.get_by_label("E-mail address").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.locator("[data-send]")).to_be_enabled()
    return page


def field(page: Page) -> Locator:
    """Where the person writes."""
    return page.get_by_label("Your message")


def say(page: Page, text: str) -> None:
    """Write and send, by keyboard, until it stands in the chat."""
    told = page.locator(".from-user")
    before = told.count()
    field(page).fill(text)
    field(page).press("Enter")
    expect(told).to_have_count(before + 1)


def answers(page: Page) -> Locator:
    """What the assistant said."""
    return page.locator(".from-assistant .answer")


def settled(page: Page) -> None:
    """The turn has ended, and the composer is free."""
    expect(page.locator("#turn")).not_to_have_attribute("data-running", "")
    expect(page.get_by_role("button", name="Send")).to_be_visible()


def card(page: Page) -> Locator:
    """The last proposed change."""
    return page.locator(".proposal").last


def propose(page: Page, change: str = "raise the price of LMP-0002 by 5 %") -> Locator:
    """Ask the demo model for a change, and wait for its card."""
    say(page, change)
    expect(card(page).get_by_role("button", name="Confirm")).to_be_visible()
    settled(page)
    return card(page)


def chat_of(page: Page) -> str:
    """The uuid of the chat that is open."""
    page.wait_for_url(re.compile(r"/chat/[0-9a-f-]{36}/"))
    return page.url.rstrip("/").rpartition("/")[2]
