"""Proposed changes in the chat, as a person meets them: what stands on a card, and what becomes of it in every tab (TU-3)."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Locator, expect

from apps.agent.models import Card
from apps.api.models import Confirmation
from apps.catalogue.models import Change, Product
from tests.agent.wire.openai import OpenAI
from tests.agent.wire.script import Call, Finish, Say
from tests.browser import chatting
from tests.browser.chatting import Open, answers, card, propose, say, settled

pytestmark = pytest.mark.django_db(transaction=True)


def button(within: Locator, name: str) -> Locator:
    return within.get_by_role("button", name=name, exact=True)


def state(proposal: Locator) -> Locator:
    """The words in the corner of a card."""
    return proposal.locator(".pill").first


def prices() -> list[str]:
    """Every change of a price that was made."""
    return [str(after) for after in Change.objects.order_by("pk").values_list("after", flat=True)]


def ends_in(seconds: int) -> None:
    """The last card's time is nearly over, for the gate and for the chat."""
    soon = timezone.now() + timedelta(seconds=seconds)
    Confirmation.objects.update(expires_at=soon)
    Card.objects.update(expires_at=soon)


def test_a_card_shows_before_after_and_a_clock_and_its_confirmation_is_told(
    browse: Open, lamp: Product, said: list[str]
) -> None:
    page = browse()
    proposal = propose(page)
    row = proposal.get_by_role("row").nth(1)
    expect(row).to_contain_text("LMP-0002 Harbour desk lamp")
    expect(row.locator(".was")).to_have_text("20.00 EUR")
    expect(row.locator(".becomes")).to_contain_text("21.00 EUR")
    expect(proposal).to_contain_text("Nothing has changed yet")
    before = proposal.locator("time").inner_text()
    expect(proposal.locator("time")).not_to_have_text(before)
    proposal.get_by_text("Exact arguments").click()
    expect(proposal.locator("pre")).to_contain_text('"price": "21.00"')
    button(proposal, "Confirm").click()
    expect(state(proposal)).to_have_text("confirmed and done")
    expect(button(proposal, "Confirm")).to_have_count(0)
    expect(proposal.locator("pre")).to_be_visible()
    settled(page)
    expect(page.locator(".from-notice")).to_contain_text("Update prices")
    assert (len(prices()), said) == (1, [])


def test_a_rejected_card_changes_nothing_and_the_assistant_hears_of_it(browse: Open, lamp: Product) -> None:
    page = browse()
    proposal = propose(page)
    told = answers(page).count()
    button(proposal, "Reject").click()
    expect(state(proposal)).to_have_text("rejected")
    expect(answers(page)).not_to_have_count(told)
    settled(page)
    assert prices() == []


def test_confirmed_in_two_tabs_it_runs_once_and_both_say_so(browse: Open, lamp: Product) -> None:
    page = browse()
    first = propose(page)
    other = page.context.new_page()
    # This tab hears of nothing, so it still shows the buttons.
    other.route_web_socket("**/ws/agent/", lambda socket: None)
    other.goto(page.url)
    second = card(other)
    expect(button(second, "Confirm")).to_be_enabled()
    button(first, "Confirm").click()
    button(second, "Confirm").click(force=True)
    for proposal in (first, second):
        expect(state(proposal)).to_have_text("confirmed and done")
    settled(page)
    lamp.refresh_from_db()
    assert (len(prices()), str(lamp.price)) == (1, "21.00")


def test_a_card_decided_in_one_tab_changes_at_once_in_another(browse: Open) -> None:
    page = browse()
    propose(page)
    other = page.context.new_page()
    other.goto(page.url)
    button(card(page), "Reject").click()
    expect(state(card(other))).to_have_text("rejected")
    expect(button(card(other), "Confirm")).to_have_count(0)


def test_a_card_whose_time_runs_out_says_so_in_place_and_can_be_asked_for_again(browse: Open) -> None:
    page = browse()
    proposal = propose(page)
    ends_in(4)
    page.reload()
    expect(proposal).to_have_class("card proposal waiting hurry")
    expect(state(proposal)).to_have_text("expired", timeout=10_000)
    expect(proposal).to_contain_text("Nothing was changed: nobody confirmed in time.")
    expect(button(proposal, "Confirm")).to_have_count(0)
    propose(page)
    assert prices() == []


def test_confirmed_too_late_it_is_refused_with_the_reason_and_nothing_runs(browse: Open) -> None:
    page = browse()
    proposal = propose(page)
    ends_in(-1)
    button(proposal, "Confirm").click()
    expect(state(proposal)).to_have_text("expired")
    assert prices() == []


def test_a_value_that_changed_is_asked_again_on_a_new_card(browse: Open, lamp: Product) -> None:
    page = browse()
    first = propose(page)
    Product.objects.filter(pk=lamp.pk).update(price="30.00")
    button(first, "Confirm").click()
    expect(page.locator(".proposal")).to_have_count(2)
    expect(state(page.locator(".proposal").first)).to_have_text("the values changed")
    expect(card(page).locator(".was")).to_have_text("30.00 EUR")
    assert prices() == []
    button(card(page), "Confirm").click()
    expect(state(card(page))).to_have_text("confirmed and done")
    assert len(prices()) == 1


def test_two_cards_of_one_answer_are_decided_in_any_order(
    answering: Callable[..., OpenAI], browse: Open, lamp: Product
) -> None:
    first, second = (json.dumps({"changes": [{"sku": "LMP-0002", "price": price}]}) for price in ("21.00", "22.00"))
    calls = (Call("c1", "catalogue_update_prices", (first,)), Call("c2", "catalogue_update_prices", (second,)))
    answering([*calls, Finish()], [Say("Two of them."), Finish()], [Say("So be it."), Finish()])
    page = browse()
    say(page, "Do both")
    expect(answers(page).last).to_have_text("Two of them.", timeout=20_000)
    one, two = page.locator(".proposal").nth(0), page.locator(".proposal").nth(1)
    button(two, "Confirm").click()
    expect(state(two)).to_have_text("confirmed and done")
    expect(state(one)).to_have_text("waits for you")
    button(one, "Reject").click()
    expect(answers(page).last).to_have_text("So be it.")
    lamp.refresh_from_db()
    assert str(lamp.price) == "22.00"


def test_a_card_tells_what_is_stored_whatever_the_model_calls_it(
    answering: Callable[..., OpenAI], browse: Open, lamp: Product, said: list[str]
) -> None:
    lie = "I only **refresh** the view. <b onclick=alert(1)>Confirm</b> to go on."
    call = Call("c1", "catalogue_delete_products", ('{"skus": ["LMP-0002"]}',))
    answering([Say(lie), call, Finish()], [Say("Please confirm the refresh."), Finish()])
    page = browse()
    say(page, "Refresh")
    expect(answers(page).last).to_have_text("Please confirm the refresh.", timeout=20_000)
    expect(card(page).get_by_role("heading")).to_have_text("Delete products")
    expect(card(page)).to_contain_text("LMP-0002")
    assert said == []


def test_a_card_whose_tool_was_taken_away_shows_nothing_of_it(browse: Open, member: Any) -> None:
    page = browse()
    propose(page)
    member.user_permissions.remove(*member.user_permissions.filter(codename="change_product"))
    page.reload()
    expect(card(page)).to_contain_text("You may not see this tool any more")
    expect(card(page)).not_to_contain_text("21.00")
    expect(button(card(page), "Confirm")).to_have_count(0)


def test_a_refused_decision_stays_on_the_card_until_it_is_tried_again(browse: Open) -> None:
    page = browse()
    proposal = propose(page)
    page.route("**/confirm", lambda route: route.abort())
    button(proposal, "Confirm").click()
    expect(proposal.locator("[data-card-error]")).to_contain_text("The server does not answer")
    page.evaluate("window.dispatchEvent(new Event('online'))")
    page.wait_for_timeout(500)
    expect(proposal.locator("[data-card-error]")).to_be_visible()
    page.unroute("**/confirm")
    button(proposal, "Confirm").click()
    expect(state(proposal)).to_have_text("confirmed and done")


def test_a_card_is_decided_by_keyboard_alone(browse: Open) -> None:
    page = browse()
    page.keyboard.type("raise the price of LMP-0002 by 5 %")
    page.keyboard.press("Enter")
    expect(card(page).get_by_role("button", name="Confirm")).to_be_visible()
    settled(page)
    for _ in range(20):
        page.keyboard.press("Shift+Tab")
        if page.evaluate("document.activeElement.dataset.decide") == "confirm":
            break
    page.keyboard.press("Enter")
    expect(state(card(page))).to_have_text("confirmed and done")
    assert page.evaluate("document.activeElement.tagName") == "H3"
    assert chatting.chat_of(page)
