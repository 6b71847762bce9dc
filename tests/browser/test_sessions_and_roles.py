"""One's own sessions and the switch of roles as a person uses them: by keyboard, on a phone, without scripts."""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Group
from playwright.sync_api import Browser, BrowserContext, Page, expect

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from tests.api.factories import set_setting
from tests.browser.signing_in import PASSWORD
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)
PAGE = "/account/sessions/"

Open = Callable[..., BrowserContext]


@pytest.fixture
def member(transactional_db: None) -> Any:
    """Holds two roles; acting as one of them is switched on."""
    set_setting("accounts_act_as_role", True)
    member = get_user_model()._default_manager.create_user("member@example.org", PASSWORD, name="Mara Member")
    member.groups.set([Group.objects.create(name=name) for name in ("Packers", "Sellers")])
    return member


@pytest.fixture
def new_browser(browser: Browser, program: Program) -> Iterator[Open]:
    """Opens a browser of its own, cookies apart from the others'; options of Playwright by keyword."""
    opened: list[BrowserContext] = []

    def start(**options: Any) -> BrowserContext:
        opened.append(browser.new_context(base_url=program.url, **options))
        return opened[-1]

    yield start
    for context in opened:
        context.close()


def _sign_in(context: BrowserContext, person: Any) -> Page:
    page = context.new_page()
    page.goto(PAGE)
    page.get_by_label("E-mail address").fill(person.email)
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    return page


def _tab_to(page: Page, label: str) -> None:
    """By the Tab key alone, to the control of this name."""
    for _ in range(30):
        page.keyboard.press("Tab")
        name = page.evaluate("(e => e.labels?.[0]?.innerText ?? e.innerText)(document.activeElement)")
        if name.strip() == label:
            return
    raise AssertionError(f"{label} is not reached")


def test_a_member_switches_roles_by_keyboard_and_sees_it_in_the_header(new_browser: Open, member: Any) -> None:
    page = _sign_in(new_browser(), member)
    switch = page.get_by_role("banner").get_by_role("combobox", name="Acting as")
    expect(switch.locator("option:checked")).to_have_text("All roles")

    _tab_to(page, "Acting as")
    page.keyboard.press("S")
    _tab_to(page, "Switch")
    page.keyboard.press("Enter")

    expect(page.get_by_role("status")).to_have_text("This session acts as Sellers.")
    expect(switch.locator("option:checked")).to_have_text("Sellers")
    expect(page.get_by_role("listitem").filter(has_text="This session")).to_contain_text("Sellers")
    entry = Entry.objects.get(action="session.role_chosen")
    assert (entry.metadata["old"], entry.metadata["new"]) == (None, "Sellers")

    switch.select_option("All roles")
    page.get_by_role("button", name="Switch").click()
    expect(switch.locator("option:checked")).to_have_text("All roles")


def test_a_lost_role_signs_out_the_browser_that_acts_as_it(new_browser: Open, member: Any) -> None:
    page = _sign_in(new_browser(), member)
    page.get_by_role("combobox", name="Acting as").select_option("Packers")
    page.get_by_role("button", name="Switch").click()
    expect(page.get_by_role("status")).to_have_text("This session acts as Packers.")
    member.groups.remove(Group.objects.get(name="Packers"))
    page.reload()
    expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


def test_an_ended_session_is_signed_out_on_its_next_request(new_browser: Open, member: Any) -> None:
    page = _sign_in(new_browser(), member)
    phone = _sign_in(
        new_browser(user_agent="Mozilla/5.0 (Android 15; Mobile; rv:140.0) Gecko/140.0 Firefox/140.0"), member
    )
    page.reload()
    other = page.get_by_role("listitem").filter(has_text="Firefox on Android")
    button = other.get_by_role("button", name="End this session")
    expect(button).to_have_accessible_description(re.compile("Firefox on Android.*127.0.0.1"))
    button.click()
    expect(page.get_by_role("status")).to_have_text("The session is ended.")
    expect(page.get_by_role("region", name="Ended lately")).to_contain_text("ended by yourself")
    phone.reload()
    expect(phone.get_by_role("heading", name="Sign in")).to_be_visible()
    assert LiveSession.objects.get(ended_at=None).user == member


def test_all_others_are_ended_at_once_and_without_scripts(new_browser: Open, member: Any) -> None:
    others = [_sign_in(new_browser(), member) for _ in range(2)]
    page = _sign_in(new_browser(java_script_enabled=False), member)
    page.get_by_role("button", name="End all others").click()
    expect(page.get_by_role("status")).to_have_text("2 other sessions are ended.")
    expect(page.get_by_text("You are signed in nowhere else.")).to_be_visible()
    for other in others:
        other.reload()
        expect(other.get_by_role("heading", name="Sign in")).to_be_visible()


def test_the_header_leads_to_the_page_and_says_where_one_is(new_browser: Open, member: Any) -> None:
    page = _sign_in(new_browser(), member)
    page.goto("/account/keys/")
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Sessions").click()
    expect(page.get_by_role("heading", name="Sessions")).to_be_visible()
    expect(page.get_by_role("link", name="Sessions")).to_have_attribute("aria-current", "page")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_phone_and_keeps_its_policy(new_browser: Open, member: Any, scheme: str) -> None:
    said: list[str] = []
    _sign_in(new_browser(user_agent="an-agent-with-a-very-long-name/" * 9), member)
    context = new_browser(viewport={"width": 390, "height": 844}, color_scheme=scheme)
    page = _sign_in(context, member)
    page.on("console", lambda message: said.append(message.text))
    page.reload()
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    for button in page.get_by_role("button").all():
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
    assert said == []
