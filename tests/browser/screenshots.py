"""`make screenshots`: the chat in each of its states, on a desktop, a phone and in the dark, as docs/screenshots keeps them; with `--pages`
also every other page that people see, into var/screenshots.

The program runs as `make run` starts it, on a new database with its demo; where a model is needed, a provider of this script answers.
"""

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.agent.wire.script import Finish, Gate, Refuse, Say
from tests.browser.shop import ROOT, Shop, endpoint, launch, running, signed_in

Shot = Callable[[str], None]

KEPT, OTHERS = ROOT / "docs" / "screenshots", ROOT / "var" / "screenshots"

DESKTOP: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}}
VARIANTS: dict[str, dict[str, Any]] = {
    "desktop": DESKTOP,
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True},
    "dark": {**DESKTOP, "color_scheme": "dark"},
}
ANSWER = """Three lamps stand out:

| SKU | Name | Stock |
|---|---|---:|
| LMP-0002 | Harbour desk lamp | 0 |
| LMP-0005 | Alder floor lamp | 12 |

Shall I look at the suppliers of """


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.browser.screenshots", description=__doc__)
    parser.add_argument("--pages", action="store_true", help="the other pages too, into var/screenshots")
    parser.add_argument("--variant", choices=list(VARIANTS), help="that one alone")
    options = parser.parse_args()
    if options.variant is None:
        # Each in a process and a shop of its own, so that all show the same.
        for name in VARIANTS:
            subprocess.run(
                [sys.executable, "-m", "tests.browser.screenshots", *sys.argv[1:], "--variant", name], check=True
            )
        return 0
    with tempfile.TemporaryDirectory() as folder, running(Path(folder)) as shop, sync_playwright() as playwright:
        browser = launch(playwright)
        _chat(browser, shop, options.variant, VARIANTS[options.variant])
        if options.pages:
            _pages(browser, shop, options.variant, VARIANTS[options.variant])
        browser.close()
    return 0


# --- The chat ---------------------------------------------------------------------------------------------------------


def _chat(browser: Browser, shop: Shop, variant: str, options: dict[str, Any]) -> None:
    """The seven states."""
    context = browser.new_context(base_url=shop.url, **options)
    page = signed_in(context, shop, "member")
    KEPT.mkdir(parents=True, exist_ok=True)

    def shot(state: str) -> None:
        page.wait_for_timeout(300)
        page.screenshot(path=KEPT / f"{state}-{variant}.png")

    page.goto("/chat/")
    shot("empty")
    _cards(page, shot)
    _answers(page, shot)
    other = context.new_page()
    other.goto("/account/sessions/")
    other.get_by_role("button", name="Sign out").first.click()
    expect(page.locator("[data-banner]")).to_contain_text("signed out")
    shot("signed-out")
    context.close()


def _cards(page: Page, shot: Shot) -> None:
    """One that waits and is confirmed, and one whose time is over."""
    from apps.agent.models import Card
    from apps.api.models import Confirmation
    from tests.browser import chatting

    chatting.say(page, "Which lamps are out of stock?")
    chatting.settled(page)
    card = chatting.propose(page, "Raise the price of LMP-0002 by 5 %")
    card.scroll_into_view_if_needed()
    shot("card-waiting")
    card.get_by_role("button", name="Confirm").click()
    expect(card.locator(".pill").first).to_have_text("confirmed and done")
    chatting.settled(page)
    card.scroll_into_view_if_needed()
    shot("card-confirmed")
    page.goto("/chat/")
    card = chatting.propose(page, "Lower the price of LMP-0002 by 2 %")
    for model in (Confirmation, Card):
        model.objects.filter(state="waiting").update(expires_at=_past())
    page.reload()
    expect(card.locator(".pill").first).to_have_text("expired")
    shot("card-expired")


def _answers(page: Page, shot: Shot) -> None:
    """One on its way, and one that failed, from a model of our own."""
    from apps.agent.models import ModelEndpoint
    from tests.browser import chatting

    gate = Gate()
    with endpoint([Say(ANSWER), gate, Finish()], [Refuse(401, {"error": {"message": "no"}})]):
        page.goto("/chat/")
        chatting.say(page, "Which lamps should I order again?")
        expect(chatting.answers(page).last.get_by_role("cell", name="LMP-0005")).to_be_visible(timeout=20_000)
        shot("streaming")
        gate.opened.set()
        chatting.settled(page)
        page.goto("/chat/")
        chatting.say(page, "Which lamps should I order again?")
        expect(page.locator(".from-notice")).to_be_visible(timeout=20_000)
        chatting.settled(page)
        shot("failed-turn")
    ModelEndpoint.objects.all().delete()


def _past() -> Any:
    from django.utils import timezone

    return timezone.now() - timedelta(seconds=5)


# --- The other pages --------------------------------------------------------------------------------------------------


def _pages(browser: Browser, shop: Shop, variant: str, options: dict[str, Any]) -> None:
    OTHERS.mkdir(parents=True, exist_ok=True)

    def shot(page: Page, name: str) -> None:
        page.wait_for_timeout(300)
        page.screenshot(path=OTHERS / f"{name}-{variant}.png")

    visitor = browser.new_context(base_url=shop.url, **options)
    page = visitor.new_page()
    page.goto("/sign-in/")
    shot(page, "sign-in")
    visitor.close()
    for role, seen in _PAGES.items():
        context = browser.new_context(base_url=shop.url, **options)
        page = signed_in(context, shop, role)
        for name, visit in seen.items():
            visit(page)
            shot(page, f"{role}-{name}")
        context.close()


def _visits(address: str) -> Callable[[Page], object]:
    return lambda page: page.goto(address)


def _renaming(page: Page) -> None:
    _listing(page)
    page.get_by_role("button", name="Rename", exact=True).first.click()


def _listing(page: Page) -> None:
    page.goto("/chat/")
    if page.locator("[data-open-list]").is_visible():
        page.locator("[data-open-list]").click()
    page.locator("[data-menu] summary").first.click()


def _completing(page: Page) -> None:
    page.goto("/chat/")
    page.get_by_label("Your message").press_sequentially("/cat", delay=30)
    expect(page.get_by_role("option").first).to_be_visible()


_PAGES: dict[str, dict[str, Callable[[Page], object]]] = {
    "member": {
        "list": _listing,
        "rename": _renaming,
        "completion": _completing,
        "leave": _visits("/chat/leave/?to=https%3A%2F%2Fshop.example.org%2Flamps"),
        "missing": _visits("/chat/00000000-0000-4000-8000-000000000000/"),
        "sessions": _visits("/account/sessions/"),
        "keys": _visits("/account/keys/"),
        "password": _visits("/password/change/"),
    },
    "approver": {"queue": _visits("/approvals/"), "closed": _visits("/chat/")},
    "operator": {"keys": _visits("/account/keys/"), "admin": _visits("/admin/")},
}

if __name__ == "__main__":
    sys.exit(main())
