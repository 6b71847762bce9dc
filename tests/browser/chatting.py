"""The chat in a real browser: a shop, its people, the program with a model of our own choice, and pages signed in."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from apps.agent import access, endpoint_keys
from apps.agent.models import ModelEndpoint
from apps.catalogue.models import Product
from tests.accounts.factories import make_permissions
from tests.api import factories
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Step
from tests.agent.wire.server import KEY
from tests.browser.signing_in import PASSWORD
from tests.catalogue.factories import make_category, make_product
from tests.services import Program

RIGHTS = (
    access.PERMISSION,
    *(f"catalogue.{verb}_product" for verb in ("view", "change", "add", "delete")),
)

Open = Callable[..., Page]


@pytest.fixture
def lamp(transactional_db: None) -> Product:
    """A lamp that is out of stock, in a shop whose changes the assistant may propose."""
    factories.set_setting("api_session_write_modules", ["catalogue"])
    return make_product(
        sku="LMP-0002", name="Harbour desk lamp", category=make_category(slug="lamps"), price="20.00", stock=0
    )


@pytest.fixture
def member(transactional_db: None) -> Any:
    """Who may use the assistant."""
    person = get_user_model()._default_manager.create_user("member@example.org", PASSWORD, name="Member")
    person.user_permissions.set(make_permissions(RIGHTS))
    return person


@pytest.fixture
def answering(transactional_db: None) -> Iterator[Callable[..., OpenAI]]:
    """A provider that speaks OpenAI's wire format and plays these answers, as the default endpoint."""
    started: list[OpenAI] = []

    def start(*answers: Sequence[Step]) -> OpenAI:
        wire = OpenAI(*answers)
        started.append(wire)
        wire.__enter__()
        row = ModelEndpoint(name="Wire", provider="openai", base_url=wire.url, model="wire-1", is_default=True)
        endpoint_keys.put(row, KEY)
        row.save()
        return wire

    yield start
    for wire in started:
        wire.__exit__()


@pytest.fixture
def program(lamp: Product, member: Any, start_program: Callable[..., Program]) -> Program:
    """The program as `make run` has it; providers may be on this machine."""
    return start_program("uvicorn", DEBUG="1", MODEL_NETWORKS="127.0.0.0/8")


@pytest.fixture
def visited() -> list[str]:
    """The hosts that any page asked for something."""
    return []


@pytest.fixture
def browse(browser: Browser, program: Program, member: Any, said: list[str], visited: list[str]) -> Iterator[Open]:
    """Opens the chat in a browser of its own, signed in as the member; options of Playwright by keyword."""
    opened: list[BrowserContext] = []

    def start(address: str = "/chat/", **options: Any) -> Page:
        context = browser.new_context(
            base_url=program.url, permissions=["clipboard-read", "clipboard-write"], **options
        )
        opened.append(context)
        return sign_in(watched(context.new_page(), said, visited), address, member)

    yield start
    for context in opened:
        context.close()


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
    """Write and send, by keyboard."""
    field(page).fill(text)
    field(page).press("Enter")


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
