"""The program in a real browser: an operator signed in, a member who chats, and what the browser says about policies and scripts."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, BrowserContext, Page, expect

from apps.agent import endpoint_keys
from apps.agent.models import ModelEndpoint
from apps.catalogue.models import Product
from tests.accounts.factories import make_permissions
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Step
from tests.agent.wire.server import KEY
from tests.api import factories
from tests.browser import chatting
from tests.browser.signing_in import PASSWORD, sign_in
from tests.catalogue.factories import make_category, make_product
from tests.services import Program

# The first answer of a process loads a provider's library, and other tests run beside this one.
expect.set_options(timeout=20_000)


@pytest.fixture
def operator(transactional_db: None) -> Any:
    """A superuser with PASSWORD."""
    return get_user_model()._default_manager.create_superuser("operator@example.org", PASSWORD)


@pytest.fixture
def program(operator: Any, start_program: Callable[..., Program]) -> Program:
    """The program as `make run` has it."""
    return start_program("uvicorn", DEBUG="1")


@pytest.fixture
def said() -> list[str]:
    """What the console of the browser says about policies and errors of scripts."""
    return []


@pytest.fixture
def context(browser: Browser, program: Program) -> Iterator[BrowserContext]:
    """A browser with its clipboard."""
    opened = browser.new_context(base_url=program.url, permissions=["clipboard-read", "clipboard-write"])
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext, operator: Any, said: list[str]) -> Page:
    """Signed in as the operator."""
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if "Security Policy" in message.text else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    sign_in(page, operator)
    return page


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
    person.user_permissions.set(make_permissions(chatting.RIGHTS))
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
def chat_program(lamp: Product, member: Any, start_program: Callable[..., Program]) -> Program:
    """The program as `make run` has it; providers may be on this machine."""
    return start_program("uvicorn", DEBUG="1", MODEL_NETWORKS="127.0.0.0/8")


@pytest.fixture
def visited() -> list[str]:
    """The hosts that any page asked for something."""
    return []


@pytest.fixture
def browse(
    browser: Browser, chat_program: Program, member: Any, said: list[str], visited: list[str]
) -> Iterator[chatting.Open]:
    """Opens the chat in a browser of its own, signed in as the member; options of Playwright by keyword."""
    opened: list[BrowserContext] = []

    def start(address: str = "/chat/", **options: Any) -> Page:
        context = browser.new_context(
            base_url=chat_program.url, permissions=["clipboard-read", "clipboard-write"], **options
        )
        opened.append(context)
        return chatting.sign_in(chatting.watched(context.new_page(), said, visited), address, member)

    yield start
    for context in opened:
        context.close()
