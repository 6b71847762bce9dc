"""Approvals in the admin site: what an operator finds, and the word that is given there through the one function that decides."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from apps.api import approvals, deciding, preview, row
from apps.api.models import ApiKey, Approval, IdempotencyRecord, Vote
from tests.api import factories
from tests.api.shop import PERMISSION
from tests.api.test_admin_keys import make_staff, page, signed_in
from tests.api.test_admin_records import details, states
from tests.api.test_approvals import Prices, prices

__all__ = ["prices"]

pytestmark = [pytest.mark.sqlite]

LIST = "/admin/api/approval/"
DECIDE = f"{LIST}decide/"
VIEW = "api.view_approval"


@pytest.fixture
def watcher(prices: Prices) -> Client:
    """May see approvals, and decides none."""
    return signed_in(make_staff(VIEW))


@pytest.fixture
def approver(prices: Prices) -> Client:
    """May decide, and has no other right to see them here."""
    return signed_in(make_staff(deciding.PERMISSION, PERMISSION))


def state(approval: Approval) -> str:
    return Approval.objects.get(pk=approval.pk).state


def seen(approval: Approval, version: int = 1) -> str:
    return f"{approval.pk} {version}"


def give(client: Client, *words: str, approve: bool = True, note: str = "") -> str:
    """The page after it."""
    form = {"seen": list(words), "decision": "approve" if approve else "reject", "note": note}
    return str(client.post(DECIDE, form, follow=True).content.decode())


# --- What is there ----------------------------------------------------------------------------------------------------


def test_the_list_shows_who_asks_for_what_and_its_true_state(prices: Prices, watcher: Client) -> None:
    asked = [prices.asked(to=number) for number in range(3, 6)]
    Approval.objects.filter(pk=asked[0].pk).update(expires_at=timezone.now() - timedelta(minutes=1))
    Approval.objects.filter(pk=asked[1].pk).update(
        state="approved", approvals=1, start_before=timezone.now() - timedelta(minutes=1)
    )
    shown = page(watcher, LIST)
    assert states(shown) == ["pending", "failed", "expired"]
    assert "not_started" in shown
    assert f'/admin/api/apikey/?family={asked[0].family_id}">machine<' in shown
    assert ("1 of 1" in shown, "0 of 1" in shown) == (True, True)
    assert prices.owner.email in shown
    for name, found in {"pending": 1, "approved": 0, "expired": 1, "failed": 1, "done": 0}.items():
        assert len(states(page(watcher, LIST, state=name))) == found
    assert len(states(page(watcher, LIST, tool="shop.run"))) == 3
    assert [len(states(page(watcher, LIST, needs=needs))) for needs in ("one", "more", "me")] == [3, 0, 0]


def test_the_search_finds_ids_and_names(prices: Prices, watcher: Client) -> None:
    one, two = prices.asked(to=3), prices.asked(to=4)
    Approval.objects.filter(pk=two.pk).update(request_id="the-request")
    for term, found in {
        str(one.pk): 1,
        "the-request": 1,
        str(one.family_id): 2,
        one.key.public_id: 2,
        "machin": 2,
        "nobody": 0,
    }.items():
        assert len(states(page(watcher, LIST, q=term))) == found


def test_a_page_shows_all_of_it_and_nothing_can_be_changed(prices: Prices, watcher: Client) -> None:
    ApiKey.objects.update(approvers_needed=2)
    approval = prices.asked(to="<b>9</b>", idempotency_key="nightly")
    prices.decide(approval, note="Looks <i>right</i>.")
    shown = page(watcher, details(approval))
    assert 'class="was"' in shown
    assert "&lt;b&gt;9&lt;/b&gt;" in shown
    assert "<b>9</b>" not in shown
    assert "Looks &lt;i&gt;right&lt;/i&gt;." in shown
    assert f"/approvals/{approval.pk}/" in shown
    assert "1 of 2" in shown
    assert "Approve or reject" not in shown
    assert not re.search(r"<(textarea|select)|type=.text", shown.split('id="content"')[1])
    record = IdempotencyRecord.objects.get()
    assert details(approval) in page(signed_in(make_staff("api.view_idempotencyrecord")), details(record))
    for address in (f"{LIST}add/", f"{details(approval)[:-7]}delete/"):
        assert watcher.get(address).status_code == 403
    assert watcher.post(details(approval), {"state": "done"}).status_code == 403
    answer = watcher.get(f"{details(approval)[:-7]}history/")
    assert answer["Location"] == f"/admin/activity/entry/?q={approval.pk}"


def test_what_is_not_kept_any_more_is_said(prices: Prices, watcher: Client) -> None:
    approval = prices.asked(to=3)
    approvals.cancel(approval, actor=factories.SYSTEM)
    Approval.objects.update(arguments=None, preview=None)
    shown = page(watcher, details(approval))
    assert "The preview is not kept any more." in shown
    assert "The arguments are not kept any more." in shown


def test_a_list_of_many_costs_no_query_for_each(
    prices: Prices,
    watcher: Client,
    django_assert_max_num_queries: Any,
) -> None:
    for number in range(3, 20):
        prices.asked(to=number)
    Approval.objects.update(state="running", attempt=1)
    with django_assert_max_num_queries(14):
        assert states(page(watcher, LIST)) == ["failed"] * 17


# --- The word ---------------------------------------------------------------------------------------------------------


def test_an_approver_looks_at_the_preview_and_approves_with_a_note(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    assert f"{DECIDE}?approval={approval.pk}" in page(approver, details(approval))
    asks = page(approver, DECIDE, approval=str(approval.pk))
    assert f'value="{seen(approval)}"' in asks
    assert 'class="was"' in asks
    assert json.dumps(5) in asks
    shown = give(approver, seen(approval), note="Fine\r\nby me.")
    assert "You approved 1 write." in shown
    assert (state(approval), Vote.objects.get().note) == ("approved", "Fine\nby me.")
    entry = Entry.objects.get(action="api.approval_decided")
    assert (entry.mode, entry.actor_uuid, entry.resource_uuid) == (
        "manual", str(Vote.objects.get().voter_id), str(approval.pk),
    )  # fmt: skip
    assert "Approve or reject" not in shown
    assert "None of these waits" in page(approver, DECIDE, approval=str(approval.pk))


def test_a_click_twice_is_one_vote_and_no_error(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    assert "You approved 1 write." in give(approver, seen(approval))
    again = give(approver, seen(approval))
    assert 'class="error"' not in again
    assert "already" in give(approver, seen(approval), approve=False)
    assert (state(approval), Vote.objects.count()) == ("approved", 1)


def test_several_are_decided_by_the_action_and_each_refusal_is_told(prices: Prices, approver: Client) -> None:
    one, two, gone = (prices.asked(to=number) for number in range(3, 6))
    answer = approver.post(LIST, {"action": "decide_selected", "_selected_action": [one.pk, two.pk, gone.pk]})
    asks = approver.get(answer["Location"]).content.decode()
    assert all(f'value="{seen(each)}"' in asks for each in (one, two, gone))
    approvals.cancel(gone, actor=factories.SYSTEM)
    shown = give(approver, seen(one), seen(two), seen(gone), approve=False, note="No.")
    assert "You rejected 2 writes." in shown
    assert "This approval is cancelled already. (shop.run)" in shown
    assert [state(each) for each in (one, two, gone)] == ["rejected", "rejected", "cancelled"]


def test_the_preview_that_the_page_showed_is_the_one_that_is_decided(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    Approval.objects.update(preview_version=2, preview=preview("Other.", [row("a", "b", before=1, after=2)]))
    assert "The preview changed after you saw it" in give(approver, seen(approval, 1))
    assert (state(approval), Vote.objects.count()) == ("pending", 0)
    assert f'value="{seen(approval, 2)}"' in page(approver, DECIDE, approval=str(approval.pk))


@pytest.mark.parametrize("permissions", [[VIEW], [VIEW, PERMISSION], ["api.view_apikey"]])
def test_nobody_decides_without_the_permission(prices: Prices, permissions: list[str]) -> None:
    approval, client = prices.asked(to=5), signed_in(make_staff(*permissions))
    if VIEW in permissions:
        assert "decide_selected" not in page(client, LIST)
        assert "Approve or reject" not in page(client, details(approval))
    else:
        assert client.get(LIST).status_code == 403
    client.post(LIST, {"action": "decide_selected", "_selected_action": [approval.pk]})
    assert client.get(DECIDE, {"approval": str(approval.pk)}).status_code == 403
    assert client.post(DECIDE, {"seen": [seen(approval)], "decision": "approve"}).status_code == 403
    assert state(approval) == "pending"


def test_without_the_tools_own_permission_nothing_is_seen_or_decided(prices: Prices) -> None:
    approval, client = prices.asked(to=5), signed_in(make_staff(deciding.PERMISSION))
    assert states(page(client, LIST)) == []
    assert "None of these waits" in page(client, DECIDE, approval=str(approval.pk))
    assert "There is no such approval." in give(client, seen(approval))
    assert state(approval) == "pending"


def test_who_asks_can_not_decide_and_a_superuser_is_no_exception(prices: Prices) -> None:
    approval, client = prices.asked(to=5), signed_in(prices.owner)
    asks = page(client, DECIDE, approval=str(approval.pk))
    assert "Who asks can&#x27;t decide" in asks
    assert 'name="decision"' not in asks
    assert 'name="seen"' not in asks
    assert "Nobody decides what a key of their own asks for" in give(client, seen(approval))
    assert state(approval) == "pending"


def test_an_impersonated_session_decides_nothing(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    LiveSession.objects.update(impersonator=prices.owner)
    answer = approver.post(DECIDE, {"seen": [seen(approval)], "decision": "approve"}, follow=True)
    assert "You approved" not in answer.content.decode()
    assert (state(approval), Vote.objects.count()) == ("pending", 0)


@pytest.mark.parametrize(
    "form",
    [
        {"seen": ["x 1"], "decision": "approve"},
        {"seen": ["{uuid}"], "decision": "approve"},
        {"seen": ["{uuid} ²"], "decision": "approve"},
        {"seen": ["{uuid} 1"], "decision": "maybe"},
        {"seen": ["{uuid} 1"]},
        {"decision": "approve"},
        {"seen": ["{uuid} 1"], "decision": "approve", "note": "x" * 2_001},
        {"seen": ["{uuid} 1"], "decision": "approve", "note": "a\x00b"},
    ],
)
def test_an_odd_form_decides_nothing(prices: Prices, approver: Client, form: dict[str, Any]) -> None:
    approval = prices.asked(to=5)
    words = [word.format(uuid=approval.pk) for word in form.get("seen", [])]
    answer = approver.post(DECIDE, {**form, "seen": words}, follow=True)
    assert answer.status_code in (200, 403)
    assert "You approved" not in answer.content.decode()
    assert (state(approval), Vote.objects.count()) == ("pending", 0)
    assert page(approver, DECIDE, approval="x\x00")
