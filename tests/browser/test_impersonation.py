"""An operator looks at the site as somebody else, in a real browser: it is always said, nothing can be changed, and it ends."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from playwright.sync_api import Page

from apps.accounts.models import LiveSession, User
from apps.activity.models import Entry

pytestmark = pytest.mark.django_db(transaction=True)
BANNER = "section.impersonation"
TEXT = "You look at the site as Some Person. You can look, not change."


@pytest.fixture
def person(transactional_db: None) -> User:
    return get_user_model().objects.create_user("person@example.org", name="Some Person")


@pytest.fixture
def staff(transactional_db: None) -> User:
    """One whose admin site has something to see."""
    return get_user_model().objects.create_superuser("person@example.org", name="Some Person")


def _look_as(page: Page, person: User, *, double: bool = False) -> None:
    page.goto(f"/admin/accounts/user/{person.pk}/change/")
    (page.dblclick if double else page.click)("button:has-text('Look at the site as this person')")
    page.wait_for_url("**/account/sessions/")


def test_an_operator_looks_as_a_person_changes_nothing_and_is_themselves_again(
    page: Page, operator: Any, person: User, said: list[str]
) -> None:
    _look_as(page, person)
    assert page.inner_text(f"{BANNER} p") == TEXT
    row = LiveSession.objects.get(user=person)
    assert row.impersonator == operator

    page.evaluate("""() => {
        const form = document.querySelector("form.who");
        form.action = "/account/sessions/end-others/";
        form.submit();
    }""")
    page.wait_for_url("**/end-others/")
    assert page.inner_text("h1") == "You may only look"
    assert page.inner_text(f"{BANNER} p") == TEXT

    page.click(f"{BANNER} button")
    page.wait_for_url(f"**/admin/accounts/user/{person.pk}/change/")
    assert page.locator(BANNER).count() == 0
    assert operator.email in (page.text_content("#user-tools") or "")
    assert (LiveSession.objects.get(ended_at=None).user, said) == (operator, [])


def test_a_double_click_begins_one_and_ends_one(page: Page, operator: Any, person: User, said: list[str]) -> None:
    _look_as(page, person, double=True)
    page.dblclick(f"{BANNER} button")
    page.wait_for_url(f"**/admin/accounts/user/{person.pk}/change/")
    assert LiveSession.objects.get(ended_at=None).user == operator
    assert (Entry.objects.filter(action="session.impersonated").count(), said) == (1, [])


def test_the_admin_site_says_so_at_every_place_and_refuses_to_save(page: Page, staff: User, said: list[str]) -> None:
    _look_as(page, staff)
    page.goto(f"/admin/accounts/user/{staff.pk}/change/")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    seen = page.locator(BANNER).bounding_box()
    assert seen is not None
    assert seen["y"] == 0
    assert page.locator("button:has-text('Look at the site as this person')").count() == 0
    page.fill("input[name=name]", "Somebody else")
    page.click("input[name=_save]")
    assert page.inner_text("h1") == "You may only look"
    staff.refresh_from_db()
    assert (staff.name, said) == ("Some Person", [])


def test_the_keyboard_reaches_the_end_of_it_and_a_reader_its_name(page: Page, person: User) -> None:
    _look_as(page, person)
    assert page.get_by_role("region", name="Impersonation").count() == 1
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.ariaLabel") == "End impersonation"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/admin/accounts/user/{person.pk}/change/")


def test_the_banner_fits_every_window(page: Page, staff: User, said: list[str]) -> None:
    User.objects.filter(pk=staff.pk).update(name="A" * 150)
    _look_as(page, staff)
    wide = []
    for address in ("/account/sessions/", "/admin/", f"/admin/accounts/user/{staff.pk}/change/"):
        for width in (1280, 390):
            page.set_viewport_size({"width": width, "height": 844})
            page.goto(address)
            if page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth"):
                wide.append((address, width))
    assert (wide, said) == ([], [])
