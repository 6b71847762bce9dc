"""My keys as a person uses them, in a real browser and under the site's policy."""

from contextlib import suppress
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Browser, BrowserContext, Error, Page

from apps.api import key_text, keys, own_keys
from apps.api.models import ApiKey
from tests.api import factories
from tests.browser.signing_in import PASSWORD
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
LIST, NEW = "/account/keys/", "/account/keys/new/"


@pytest.fixture
def member(transactional_db: None) -> Any:
    """May read the catalogue, and make keys of their own; with PASSWORD."""
    factories.set_setting("api_own_keys", True)
    member = get_user_model()._default_manager.create_user("member@example.org", PASSWORD)
    factories.grant(member, "catalogue.view_product")
    factories.grant(member, own_keys.PERMISSION)
    return member


@pytest.fixture
def page(context: BrowserContext, member: Any, said: list[str]) -> Page:
    """Signed in as the member, on the page of their keys."""
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if "Security Policy" in message.text else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    sign_in(page, member)
    return page


def sign_in(page: Page, person: Any) -> None:
    page.goto(f"/sign-in/?next={LIST}")
    page.fill("input[name=username]", person.email)
    page.fill("input[type=password]", PASSWORD)
    page.press("input[type=password]", "Enter")
    page.wait_for_url(f"**{LIST}")


def listed_tools(page: Page, text: str) -> list[str] | int:
    """What the API answers to this key: its tools, or the status of the refusal."""
    answer = page.request.get("/api/v1/tools", headers={"Authorization": f"Bearer {text}"})
    return [tool["name"] for tool in answer.json()["tools"]] if answer.ok else answer.status


def shown(page: Page) -> str:
    return page.locator("html").inner_html()


def test_a_key_is_made_works_is_rotated_and_revoked(page: Page, said: list[str]) -> None:
    page.click("text=Make your first key")
    page.fill("input[name=name]", "Nightly prices")
    page.check("input[value='catalogue:read']")
    page.dblclick("button:has-text('Make the key')")
    first = page.inner_text("#key-text")
    page.click("text=Copy the key")
    page.wait_for_selector("text=Copied")
    assert page.evaluate("navigator.clipboard.readText()") == first
    assert "catalogue.list_products" in str(listed_tools(page, first))

    page.click("text=I have copied it")
    page.wait_for_url(f"**{LIST}")
    page.click("a:has-text('Rotate')")
    page.check("text=none: it ends at once")
    page.dblclick("button:has-text('Rotate')")
    second = page.inner_text("#key-text")
    assert key_text.public_id(second) == ApiKey.objects.get(predecessor__isnull=False).public_id
    assert listed_tools(page, first) == 401
    assert "catalogue.list_products" in str(listed_tools(page, second))

    page.click("text=I have copied it")
    page.click("a:has-text('Revoke')")
    page.click("button:has-text('Revoke')")
    page.wait_for_selector("text=Nightly prices is revoked")
    assert listed_tools(page, second) == 401
    assert page.locator("text=None of your keys works any more.").is_visible()
    assert not page.locator("article").first.is_visible()
    page.click("text=Keys that have ended")
    assert page.locator("article").first.is_visible()
    assert (ApiKey.objects.count(), said) == (2, [])


def test_the_text_of_a_new_key_is_gone_after_its_page(page: Page, program: Program) -> None:
    page.goto(NEW)
    page.fill("input[name=name]", "Nightly prices")
    page.check("input[value='catalogue:read']")
    page.click("button:has-text('Make the key')")
    secret = page.inner_text("#key-text").split("_")[3]
    assert secret not in page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])")
    page.click("text=I have copied it")
    page.wait_for_url(f"**{LIST}")
    assert secret not in shown(page)
    with suppress(Error):  # the browser kept no page and asks before it sends the form again
        page.go_back()
    page.wait_for_load_state()
    assert secret not in shown(page) + program.log()
    assert ApiKey.objects.count() == 1


def test_an_exposed_key_is_seen_at_first_sight_and_revoked_by_keyboard(
    page: Page, member: Any, said: list[str]
) -> None:
    key, text = factories.make_key(owner=member, name="Leaked somewhere")
    keys.mark_exposed(text, request_id="r", ip="192.0.2.1")
    page.reload()
    assert "Somebody else may have this key." in page.inner_text("[role=alert]")
    for name in ("Rotate Leaked somewhere", "Revoke Leaked somewhere"):
        assert page.get_by_role("link", name=name).count() == 1

    page.get_by_role("link", name="Rotate Leaked somewhere").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/{key.pk}/revoke/")
    page.locator("main").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Leaked somewhere is revoked")
    assert (ApiKey.objects.exclude(revoked_at=None).count(), said) == (1, [])


def test_a_key_is_made_and_revoked_without_scripts(browser: Browser, program: Program, member: Any) -> None:
    page = browser.new_context(base_url=program.url, java_script_enabled=False).new_page()
    sign_in(page, member)
    page.goto(NEW)
    page.fill("input[name=name]", "Nightly prices")
    page.click("button:has-text('Make the key')")
    assert "Choose at least one." in page.inner_text("main form")
    page.check("input[value='catalogue:read']")
    page.click("button:has-text('Make the key')")
    assert key_text.PATTERN.fullmatch(page.inner_text("#key-text"))
    page.goto(f"{LIST}{ApiKey.objects.get().pk}/revoke/")
    page.click("button:has-text('Revoke')")
    assert "is revoked" in page.inner_text("[role=status]")


def test_no_page_is_wider_than_the_window_or_breaks_its_policy(page: Page, member: Any, said: list[str]) -> None:
    key, text = factories.make_key(
        owner=member, name="n" * 100, scopes=["catalogue:read", "catalogue:write"], networks=["2001:db8::/32"] * 2
    )
    keys.mark_exposed(text, request_id="r", ip="192.0.2.1")
    keys.revoke(factories.make_key(owner=member, name="An old one")[0], by=None, actor=factories.SYSTEM)
    wide = []
    for address in (LIST, NEW, f"{LIST}{key.pk}/rotate/", f"{LIST}{key.pk}/revoke/"):
        for width in (1280, 390, 320):
            page.set_viewport_size({"width": width, "height": 844})
            answer = page.goto(address)
            assert answer is not None
            assert answer.status == 200
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                wide.append((address, width))
    assert (wide, said) == ([], [])
