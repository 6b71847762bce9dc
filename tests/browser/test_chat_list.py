"""The list of chats beside the conversation, and the page on a phone, in the dark and for those who see or point otherwise."""

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from apps.agent.models import Conversation
from tests.agent import factories
from tests.browser import axe, chatting
from tests.browser.chatting import Open, field, propose, say, settled

pytestmark = pytest.mark.django_db(transaction=True)

PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def chats(member: Any) -> list[Conversation]:
    """Two chats of the member, with a text each."""
    found = [factories.make_chat(member, title=title) for title in ("Lamps", "Chairs and <b>tables</b>")]
    for chat in found:
        factories.make_message(chat, f"About {chat.title}")
    return found


def rows(page: Page) -> Locator:
    return page.locator("#chats li")


def choose(page: Page, title: str, action: str) -> None:
    """From the menu of a chat, by keyboard."""
    page.get_by_label(f"What to do with “{title}”").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name=action, exact=True).focus()
    page.keyboard.press("Enter")


def wide(page: Page) -> bool:
    """Whether the page has to be moved sideways."""
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def test_a_chat_is_renamed_by_keyboard(browse: Open, chats: list[Conversation]) -> None:
    page = browse(f"/chat/{chats[0].pk}/")
    choose(page, "Lamps", "Rename")
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("Lights <i>")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Lights <i>")
    expect(page.locator("#chats")).to_contain_text("Lights <i>")
    expect(page).to_have_title("Lights <i> · Chat · Tollhouse")


def test_a_title_that_is_refused_says_why_and_stays_in_the_field(browse: Open, chats: list[Conversation]) -> None:
    page = browse()
    choose(page, "Lamps", "Rename")
    page.get_by_label("Title").fill("   ")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("[data-rename-error]")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).not_to_be_visible()
    expect(rows(page)).to_have_count(2)


def test_an_archived_chat_leaves_the_list_comes_back_by_undo_and_is_found_by_the_search(
    browse: Open, chats: list[Conversation]
) -> None:
    page = browse()
    choose(page, "Lamps", "Archive")
    expect(rows(page)).to_have_count(1)
    page.get_by_role("button", name="Undo").click()
    expect(rows(page)).to_have_count(2)
    choose(page, "Lamps", "Archive")
    expect(rows(page)).to_have_count(1)
    page.get_by_label("Search chats").fill("lamps")
    expect(rows(page)).to_have_count(1)
    expect(rows(page)).to_contain_text("archived")
    rows(page).get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("archived")
    say(page, "hello")
    settled(page)


def test_a_deleted_chat_is_left_and_comes_back_with_its_texts_by_undo(browse: Open, chats: list[Conversation]) -> None:
    page = browse(f"/chat/{chats[0].pk}/")
    other = page.context.new_page()
    other.goto(page.url)
    field(other).fill("too late")
    choose(page, "Lamps", "Delete")
    expect(page.locator("[data-toast]")).to_contain_text("The chat is deleted.")
    expect(rows(page)).to_have_count(1)
    field(other).press("Enter")
    expect(other.locator("[data-banner]")).to_contain_text("This chat is gone")
    expect(field(other)).to_be_disabled()
    expect(field(other)).to_have_value("too late")
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_text("About Lamps")).to_be_visible()
    assert chatting.chat_of(page) == str(chats[0].pk)


def test_the_search_finds_a_persons_own_words_and_says_when_nothing_is_found(
    browse: Open, chats: list[Conversation]
) -> None:
    page = browse()
    page.get_by_label("Search chats").fill("chairs")
    expect(rows(page)).to_have_count(1)
    expect(rows(page).locator(".chat-title")).to_have_text("Chairs and <b>tables</b>")
    page.get_by_label("Search chats").fill("nothing like it")
    expect(page.locator("#chats")).to_contain_text("No chat has these words")
    page.get_by_label("Search chats").fill("")
    expect(rows(page)).to_have_count(2)


def test_more_chats_than_a_page_are_reached_by_a_button(browse: Open, member: Any) -> None:
    for number in range(25):
        factories.make_chat(member, title=f"Chat {number}")
    page = browse()
    expect(rows(page)).to_have_count(20)
    page.get_by_role("button", name="More chats").click()
    expect(rows(page)).to_have_count(25)
    expect(page.get_by_role("button", name="More chats")).to_have_count(0)


def test_earlier_messages_come_above_and_the_reader_stays_where_he_was(browse: Open, chats: list[Conversation]) -> None:
    factories.make_messages(chats[0], 120)
    page = browse(f"/chat/{chats[0].pk}/")
    expect(page.locator("[data-message]")).to_have_count(50)
    first = page.locator("[data-message]").first
    text = (first.text_content() or "").split("You")[-1].strip()
    page.get_by_role("button", name="Show earlier messages").scroll_into_view_if_needed()
    place = first.bounding_box()
    page.get_by_role("button", name="Show earlier messages").click()
    expect(page.locator("[data-message]")).to_have_count(100)
    kept = page.get_by_text(text, exact=True).bounding_box()
    assert place is not None
    assert kept is not None
    assert abs(kept["y"] - place["y"]) < 2
    page.get_by_role("button", name="Show earlier messages").click()
    expect(page.locator("[data-message]")).to_have_count(121)
    expect(page.get_by_role("button", name="Show earlier messages")).to_have_count(0)


def test_on_a_phone_everything_is_reached_and_nothing_is_wider_than_the_screen(
    browse: Open, chats: list[Conversation]
) -> None:
    page = browse(**PHONE)
    assert not wide(page)
    page.get_by_role("button", name="Chats").tap()
    page.get_by_role("link", name="Lamps").tap()
    expect(page.get_by_text("About Lamps")).to_be_visible()
    field(page).fill("raise the price of LMP-0002 by 5 %")
    page.get_by_role("button", name="Send").tap()
    confirm = page.get_by_role("button", name="Confirm")
    expect(confirm).to_be_visible()
    settled(page)
    assert not wide(page)
    box = confirm.bounding_box()
    assert box is not None
    assert box["height"] >= 44
    confirm.tap()
    expect(page.locator(".proposal .pill").first).to_have_text("confirmed and done")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_program_finds_nothing_serious_in_the_chat(browse: Open, chats: list[Conversation], scheme: str) -> None:
    page = browse(color_scheme=scheme, bypass_csp=True)
    found = axe.violations(page, within="body")
    say(page, "Which lamps are out of stock?")
    settled(page)
    propose(page)
    found += axe.violations(page, within="body")
    page.get_by_label("What to do with “Lamps”").click()
    found += axe.violations(page, within="body")
    page.get_by_role("button", name="Rename", exact=True).click()
    found += axe.violations(page, within="dialog")
    assert found == []


def test_an_open_menu_and_further_pages_stay_while_the_list_changes_by_itself(browse: Open, member: Any) -> None:
    for number in range(25):
        factories.make_chat(member, title=f"Chat {number}")
    page = browse()
    page.get_by_role("button", name="More chats").click()
    expect(rows(page)).to_have_count(25)
    say(page, "hello")
    settled(page)
    page.wait_for_timeout(1_500)
    expect(rows(page)).to_have_count(25)
    page.reload()
    page.locator("[data-menu] summary").first.click()
    page.evaluate("window.dispatchEvent(new Event('online'))")
    page.wait_for_timeout(1_500)
    expect(page.get_by_role("button", name="Rename", exact=True).first).to_be_visible()
