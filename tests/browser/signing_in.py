"""Signing in as a person does."""

from typing import Any

from playwright.sync_api import Page

PASSWORD = "correct-horse-battery"


def sign_in(page: Page, person: Any) -> None:
    page.goto("/admin/")
    page.fill("input[name=username]", person.email)
    page.fill("input[type=password]", PASSWORD)
    page.press("input[type=password]", "Enter")
    page.wait_for_url("**/admin/")
