"""One look: every page of ours passes axe in light and dark, and needs no moving sideways on a narrow phone (UI-2)."""

from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.api import factories
from tests.browser import axe
from tests.browser.signing_in import sign_in
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)

OPEN = ["/sign-in/", "/password/reset/", "/problems/not_found"]
PAGES = [
    "/chat/",
    "/chat/leave/?to=https%3A%2F%2Fshop.example.org",
    "/chat/00000000-0000-4000-8000-000000000000/",
    "/account/sessions/",
    "/account/keys/",
    "/approvals/",
    "/approvals/?list=decided",
    "/password/change/",
]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_each_page_passes_axe_and_fits_a_narrow_phone(
    browser: Browser, program: Program, operator: Any, scheme: Any
) -> None:
    factories.make_key(owner=operator, name="A key with a name of " + "unbroken" * 8)
    context = browser.new_context(
        base_url=program.url, color_scheme=scheme, bypass_csp=True, viewport={"width": 360, "height": 740}
    )
    page, found = context.new_page(), []
    for number, address in enumerate([*OPEN, *PAGES]):
        if number == len(OPEN):
            sign_in(page, operator)
        page.goto(address)
        found += [f"{address}: {fault}" for fault in axe.violations(page, within="body")]
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found.append(f"{address}: wider than the screen")
    context.close()
    assert found == []
