"""Passwords and gates as a person meets them, in a real browser, with the mails that the program prints."""

import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

from tests.accounts.factories import make_referral_code, make_user, switch_on
from tests.browser.signing_in import PASSWORD
from tests.services import Program

pytestmark = pytest.mark.django_db(transaction=True)

NEW = "another-quiet-password"


@pytest.fixture
def member(operator: Any) -> Any:
    """Somebody without rights, and with PASSWORD."""
    return make_user(email="member@example.org", name="Member", password=PASSWORD)


@pytest.fixture
def visitor(context: BrowserContext, said: list[str]) -> Page:
    """A page on which nobody is signed in."""
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text) if "Security Policy" in message.text else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return page


@pytest.fixture
def elsewhere(browser: Browser, program: Program) -> Iterator[Page]:
    """Another browser."""
    opened = browser.new_context(base_url=program.url)
    yield opened.new_page()
    opened.close()


def _sign_in(page: Page, password: str = PASSWORD) -> None:
    page.goto("/sign-in/?next=/account/sessions/")
    page.fill("input[name=username]", "member@example.org")
    page.fill("input[type=password]", password)
    page.press("input[type=password]", "Enter")
    page.wait_for_url(re.compile("/account/"))


def _link(program: Program, path: str) -> str:
    """The last link of this kind in a mail; the mail comes a moment after the answer."""
    deadline = time.monotonic() + 20
    while not (found := re.findall(rf"^http://testserver({path}\S+)", program.log(), re.MULTILINE)):
        assert time.monotonic() < deadline, program.log()
        time.sleep(0.05)
    return str(found[-1])


@pytest.mark.usefixtures("member")
def test_a_forgotten_password_is_set_anew_by_the_mails_link(visitor: Page, program: Program, said: list[str]) -> None:
    page = visitor
    page.goto("/sign-in/")
    page.click("text=Forgot your password?")
    page.fill("input[type=email]", "member@example.org")
    page.press("input[type=email]", "Enter")
    page.wait_for_selector("h1:has-text('Look into your mail')")

    link = _link(program, "/password/reset/")
    page.goto(link)
    assert page.url.endswith("/set-password/")
    page.fill("#id_new_password1", NEW)
    page.fill("#id_new_password2", "mistyped")
    page.press("#id_new_password2", "Enter")
    page.wait_for_selector("[role=alert]:focus")
    page.fill("#id_new_password1", NEW)
    page.fill("#id_new_password2", NEW)
    page.press("#id_new_password2", "Enter")
    page.click("main a:has-text('Sign in')")
    _sign_in(page, NEW)
    page.goto(link)
    assert page.inner_text("h1") == "This link is no longer good"
    assert link.rstrip("/").rpartition("/")[2] not in program.log().replace(f"http://testserver{link}", "")
    assert said == []


@pytest.mark.usefixtures("member")
def test_a_new_password_signs_out_the_other_browser_and_not_this_one(
    visitor: Page, elsewhere: Page, said: list[str]
) -> None:
    _sign_in(visitor)
    _sign_in(elsewhere)
    visitor.click("nav >> text=Password")
    for field, text in (("old_password", PASSWORD), ("new_password1", NEW), ("new_password2", NEW)):
        visitor.fill(f"#id_{field}", text)
    visitor.press("#id_new_password2", "Enter")
    visitor.wait_for_selector("h1:has-text('Your password is changed')")
    visitor.goto("/account/sessions/")
    assert visitor.url.endswith("/account/sessions/")
    elsewhere.goto("/account/sessions/")
    assert "/sign-in/" in elsewhere.url
    assert said == []


def test_both_gates_open_one_after_the_other(
    visitor: Page, elsewhere: Page, program: Program, said: list[str], member: Any
) -> None:
    switch_on("accounts_email_required", "accounts_referral_required")
    code, page = make_referral_code(most_uses=1), visitor
    _sign_in(page)
    assert page.inner_text("h1") == "Confirm your address"
    assert page.locator("nav").count() == 0
    page.click("text=Send the mail")
    page.wait_for_selector("[role=status]:has-text('member@example.org')")

    # In the mail program's browser, where nobody is signed in.
    elsewhere.goto(_link(program, "/account/e-mail/"))
    elsewhere.click("text=Confirm the address")
    elsewhere.wait_for_selector("[role=status]:has-text('is confirmed')")

    page.click("text=I have confirmed it")
    assert page.inner_text("h1") == "Your referral code"
    page.fill("#id_code", "no such code")
    page.press("#id_code", "Enter")
    page.wait_for_selector("[role=alert]:focus")
    page.fill("#id_code", f"{code.code[:6]} {code.code[6:]}".lower())
    page.press("#id_code", "Enter")
    page.wait_for_url("**/account/sessions/")
    member.refresh_from_db()
    assert (member.referral_code, member.email_confirmed_at is not None, said) == (code.code, True, [])
