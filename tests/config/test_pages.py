"""Pages in a real browser: what the policies allow is enough for them, and the admin's scripts run."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, Page

from tests.services import Program

PASSWORD = "correct-horse-battery"


@pytest.fixture
def operator(transactional_db: None) -> Any:
    """A superuser with PASSWORD."""
    return get_user_model()._default_manager.create_superuser("operator@example.org", PASSWORD)


def sign_in(page: Page, program: Program, person: Any) -> None:
    page.goto(f"{program.url}/admin/")
    page.fill("input[name=username]", person.email)
    page.fill("input[type=password]", PASSWORD)
    page.press("input[type=password]", "Enter")
    page.wait_for_url(f"{program.url}/admin/")


@pytest.mark.django_db(transaction=True)
def test_no_page_of_the_admin_breaks_its_policy(
    browser: Browser, start_program: Callable[..., Program], operator: Any
) -> None:
    program = start_program("uvicorn", DEBUG="1")
    page = browser.new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(f"{page.url} {message.text}"))
    sign_in(page, program, operator)

    hrefs = page.eval_on_selector_all("#content a[href^='/admin/']", "all => all.map(a => a.getAttribute('href'))")
    for href in sorted(set(hrefs)):
        page.goto(f"{program.url}{href}")
        if (row := page.query_selector("#result_list tbody th a")) is not None:
            page.goto(f"{program.url}{row.get_attribute('href')}")

    assert len(set(hrefs)) > 8
    assert [text for text in said if "Content Security Policy" in text or "TrustedHTML" in text] == []
