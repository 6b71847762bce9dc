"""The chat as a person uses it: asking, watching, stopping, coming back, and everything that an answer may try to do to the page."""

from collections.abc import Callable
from threading import Event
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import expect

from apps.agent.models import Conversation, Message, Turn
from tests.agent import factories
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Call, Finish, Gate, Refuse, Say, Silence
from tests.browser import chatting
from tests.browser.chatting import Open, answers, card, field, say, settled

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_person_asks_by_keyboard_and_sees_what_was_looked_up_and_the_answer(browse: Open, said: list[str]) -> None:
    page = browse()
    expect(page.get_by_text("Demo model")).to_be_visible()
    page.keyboard.type("Which lamps are out of stock?")
    page.keyboard.press("Enter")
    expect(page.locator(".tool-call")).to_contain_text("List products")
    expect(page.locator(".tool-call")).to_contain_text("1 result")
    expect(page.get_by_role("cell", name="LMP-0002")).to_be_visible()
    settled(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Which lamps are out of stock?")
    expect(page.locator("#chats")).to_contain_text("Which lamps are out of stock?")
    expect(page.locator("[data-status]")).to_have_text("The assistant has answered.")
    expect(field(page)).to_be_focused()
    assert said == []


def test_an_empty_chat_proposes_what_to_ask(browse: Open) -> None:
    page = browse()
    page.get_by_role("button", name="Which lamps are out of stock?").click()
    expect(page.get_by_role("cell", name="Harbour desk lamp")).to_be_visible()
    expect(page.get_by_text("What can I look up or prepare for you?")).not_to_be_visible()


def test_a_slash_offers_the_tools_and_runs_one_by_hand(browse: Open) -> None:
    page = browse()
    field(page).press_sequentially("/list")
    expect(page.get_by_role("option", name="List products")).to_be_visible()
    page.keyboard.press("Enter")
    expect(field(page)).to_have_value("/catalogue_list_products")
    page.keyboard.type(" query=lamp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("cell", name="LMP-0002")).to_be_visible()


def test_an_answer_streams_survives_a_reload_and_is_there_in_a_second_tab(
    answering: Callable[..., OpenAI], browse: Open
) -> None:
    gate = Event()
    answering([Say("The first half "), Say("of it, "), Gate(gate), Say("and **the second**."), Finish()])
    page = browse()
    say(page, "Tell me")
    expect(answers(page)).to_have_text("The first half of it,")
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    page.reload()
    expect(answers(page)).to_have_text("The first half of it,")
    second = page.context.new_page()
    second.goto(page.url)
    gate.set()
    for one in (page, second):
        expect(answers(one).locator("strong")).to_have_text("the second")
        settled(one)
        expect(one.locator(".from-user")).to_have_count(1)


@pytest.mark.parametrize("begins", [True, False])
def test_stop_works_from_another_tab_at_once_and_the_next_text_is_answered(
    answering: Callable[..., OpenAI], browse: Open, begins: bool
) -> None:
    first = [Say("Half of "), Silence()] if begins else [Silence()]
    wire = answering(first, [Say("Whole."), Finish()])
    page = browse()
    say(page, "Tell me")
    assert wire.silent.wait(20)
    other = page.context.new_page()
    chatting.chat_of(page)
    other.goto(page.url)
    other.get_by_role("button", name="Stop").click()
    assert wire.client_gone.wait(2)
    settled(page)
    expect(page.locator("#turn")).to_contain_text("Stopped")
    if begins:
        expect(answers(page)).to_have_text("Half of")
    say(page, "Again")
    expect(answers(page).last).to_have_text("Whole.")
    assert wire.refusals == []


def test_a_failed_turn_says_why_keeps_what_came_and_can_be_tried_again(
    answering: Callable[..., OpenAI], browse: Open
) -> None:
    answering([Refuse(401, {"error": {"message": "no", "code": "invalid_api_key"}})], [Say("Now it works."), Finish()])
    page = browse()
    say(page, "Tell me")
    expect(page.locator(".from-notice")).to_contain_text("does not accept the configured key")
    page.get_by_role("button", name="Try again").click()
    expect(answers(page)).to_have_text("Now it works.")
    expect(page.locator(".from-user")).to_have_count(1)


def test_the_same_conversation_with_a_real_endpoint_streams_and_has_a_card(
    answering: Callable[..., OpenAI], browse: Open, lamp: Any
) -> None:
    arguments = '{"changes": [{"sku": "LMP-0002", "price": "21.00"}]}'
    answering(
        [Say("I propose it."), Call("c1", "catalogue_update_prices", (arguments[:20], arguments[20:])), Finish()],
        [Say("It waits for you."), Finish()],
        [Say("It is done."), Finish()],
    )
    page = browse()
    expect(page.get_by_text("Demo model")).not_to_be_visible()
    say(page, "Raise the price")
    expect(answers(page).last).to_have_text("It waits for you.")
    card(page).get_by_role("button", name="Confirm").click()
    expect(answers(page).last).to_have_text("It is done.")
    lamp.refresh_from_db()
    assert str(lamp.price) == "21.00"


def test_what_was_missed_while_offline_is_there_once_when_the_line_is_back(browse: Open, member: Any) -> None:
    page = browse()
    say(page, "hello")
    settled(page)
    chat = Conversation.objects.get(pk=chatting.chat_of(page))
    page.context.set_offline(True)
    expect(page.locator("[data-banner]")).to_be_visible()
    for number in range(3):
        factories.make_message(chat, f"Missed {number}", role=Message.Role.ASSISTANT)
    page.context.set_offline(False)
    for number in range(3):
        expect(page.get_by_text(f"Missed {number}", exact=True)).to_have_count(1)
    expect(page.locator("[data-banner]")).not_to_be_visible(timeout=20_000)


def test_without_a_socket_the_page_looks_by_itself_and_says_so(browse: Open, said: list[str]) -> None:
    page = browse()
    page.route_web_socket("**/ws/agent/", lambda socket: socket.close(code=1011))
    page.reload()
    expect(page.locator("[data-banner]")).to_contain_text("Live updates are off", timeout=20_000)
    say(page, "Which lamps are out of stock?")
    expect(page.get_by_role("cell", name="LMP-0002")).to_be_visible(timeout=20_000)
    assert said == []


def test_a_log_out_in_another_tab_closes_the_page_with_words(browse: Open) -> None:
    page = browse()
    say(page, "hello")
    settled(page)
    other = page.context.new_page()
    other.goto("/account/sessions/")
    other.get_by_role("button", name="Sign out").first.click()
    expect(page.locator("[data-banner]")).to_contain_text("You are signed out")
    expect(page.locator("[data-do]:enabled, [data-retry]:enabled, [data-send]:enabled")).to_have_count(0)
    expect(field(page)).to_be_disabled()


HOSTILE = """<script>document.title = 'owned'</script> <img src=x onerror=alert(1)>

![shot](https://evil.example.org/x.png) [click](javascript:alert(1)) [away](https://evil.example.org/p?a=1)

<a href="https://evil.example.org">raw</a> [self](/sign-out/)

```python
print("<b>")
```
"""


def test_what_an_answer_tries_stays_inert_and_asks_no_other_host(
    answering: Callable[..., OpenAI], browse: Open, said: list[str], visited: list[str]
) -> None:
    answering([Say(HOSTILE), Finish()])
    page = browse()
    say(page, "<img src=x onerror=alert(1)>")
    expect(answers(page).get_by_role("link")).to_have_count(1 + 1)  # the picture's address is a link like others
    settled(page)
    assert page.title().startswith("<img src=x onerror=alert(1)>") or page.title().startswith("New chat")
    expect(page.get_by_role("heading", level=1)).to_have_text("<img src=x onerror=alert(1)>")
    expect(answers(page)).to_contain_text("<script>document.title = 'owned'</script>")
    expect(answers(page).locator("img, script, iframe")).to_have_count(0)
    expect(answers(page).locator(".hl-nb, .hl-k")).not_to_have_count(0)
    assert {urlsplit(url).hostname for url in visited} == {"127.0.0.1"}
    assert said == []
    page.get_by_role("link", name="away").click()
    expect(page.get_by_text("evil.example.org", exact=True)).to_be_visible()
    assert urlsplit(page.url).hostname == "127.0.0.1"


def test_a_reader_who_scrolled_up_stays_and_is_told_of_what_came(
    answering: Callable[..., OpenAI], browse: Open
) -> None:
    gate = Event()
    answering([Say("line\n\n" * 80), Gate(gate), Say("the end\n\n" * 5), Finish()])
    page = browse(viewport={"width": 900, "height": 500})
    say(page, "Tell me")
    expect(answers(page).locator("p")).to_have_count(80)
    page.locator("[data-scroller]").evaluate("node => { node.scrollTop = 0; }")
    gate.set()
    expect(answers(page)).to_contain_text("the end")
    settled(page)
    assert page.locator("[data-scroller]").evaluate("node => node.scrollTop") == 0


def test_a_draft_is_kept_over_a_reload_and_gone_after_signing_out(browse: Open, member: Any) -> None:
    page = browse()
    field(page).fill("half a thought")
    page.reload()
    expect(field(page)).to_have_value("half a thought")
    page.get_by_role("button", name="Sign out").click()
    chatting.sign_in(page, "/chat/", member)
    expect(field(page)).to_have_value("")


def test_a_second_text_while_the_assistant_answers_is_kept_and_not_stored(
    answering: Callable[..., OpenAI], browse: Open
) -> None:
    gate = Event()
    answering([Say("One "), Gate(gate), Finish()], [Say("Two"), Finish()])
    page = browse()
    say(page, "first")
    expect(answers(page)).to_have_text("One")
    field(page).fill("second")
    field(page).press("Enter")
    expect(page.locator("[data-error]")).to_contain_text("still answering")
    expect(field(page)).to_have_value("second")
    gate.set()
    settled(page)
    assert Message.objects.filter(role="user").count() == 1
    field(page).press("Enter")
    expect(answers(page).last).to_have_text("Two")
    assert Turn.objects.filter(state="done").count() == 2


def test_the_same_text_again_is_another_message_but_a_second_try_is_not(browse: Open) -> None:
    page = browse()
    say(page, "hello")
    settled(page)
    say(page, "hello")
    settled(page)
    # It is stored, but the browser never hears so.
    page.route("**/messages", lambda route: (route.fetch(), route.abort())[1])
    field(page).fill("third")
    field(page).press("Enter")
    expect(page.locator("[data-error]")).to_contain_text("Not sent")
    expect(field(page)).to_have_value("third")
    page.unroute("**/messages")
    settled(page)
    page.reload()
    expect(page.locator("[data-send]")).to_be_enabled()
    expect(field(page)).to_have_value("third")
    settled(page)
    field(page).press("Enter")
    expect(field(page)).to_have_value("")
    assert Message.objects.filter(role="user").count() == 3
