"""The program in a real browser: an operator signed in, and what the browser says about policies and scripts."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, BrowserContext, Page

from tests.browser.signing_in import PASSWORD, sign_in
from tests.services import Program


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
