"""The approver's pages: what they show to whom, the form that decides, and what it answers to a word that comes too late."""

import html
import re
import threading
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from apps.api import approval_listing, approval_queue, approval_state, deciding, lifesigns, registry, runs
from apps.api.models import Approval, Vote
from tests.accounts.factories import make_group, make_user
from tests.api import factories
from tests.api.held import wait_until
from tests.api.once import Gate
from tests.api.probe import CHANGE, WRITE
from tests.api.shop import PERMISSION, SCOPE, Shop, put
from tests.api.slow import make_slow
from tests.api.test_approvals import DECIDES, Prices, state

pytestmark = pytest.mark.sqlite

QUEUE = "/approvals/"


@pytest.fixture
def prices(shop: Shop, settings: Any) -> Prices:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    return Prices(shop)


@pytest.fixture
def approver(prices: Prices) -> Client:
    """Who may decide, in a browser."""
    return browser_of(prices.approver.user)


def browser_of(person: Any, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(person)
    return client


def someone(*permissions: str) -> Client:
    return browser_of(make_user(permissions=permissions))


def page_of(approval: Any) -> str:
    return f"{QUEUE}{getattr(approval, 'pk', approval)}/"


def words(answer: Any) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.content.decode())).split())


def shown(client: Client, address: str = QUEUE, status: int = 200, **query: Any) -> str:
    answer = client.get(address, query)
    assert answer.status_code == status
    return words(answer)


def decide(client: Client, approval: Approval, word: str = "approve", *, version: Any = 1, note: str = "") -> Any:
    form = {"decision": word, "preview_version": version, "note": note}
    return client.post(f"{page_of(approval)}decide", form)


def listed(client: Client, **query: Any) -> list[str]:
    """The uuids of the list, in its order."""
    found = re.findall(r'<li class="card asked" id="row-([0-9a-f-]+)"', client.get(QUEUE, query).content.decode())
    return [str(uuid) for uuid in found]


# --- The queue --------------------------------------------------------------------------------------------------------


def test_the_queue_lists_what_waits_with_the_oldest_first_and_who_asks(prices: Prices, approver: Client) -> None:
    first, second = prices.asked(to=5), prices.asked(to=6)
    assert listed(approver) == [str(first.pk), str(second.pk)]
    text = shown(approver)
    assert f"machine ({prices.owner.get_username()})" in text
    assert "0 of 1" in text
    assert "Set." in text
    assert "Approvals 2" in text


@pytest.mark.parametrize(
    ("view", "said"),
    [
        ("mine", "Nothing waits for you"),
        ("waiting", "Nothing waits"),
        ("running", "Nothing runs"),
        ("decided", "Nothing was decided yet"),
        ("odd", "Nothing waits for you"),
    ],
)
def test_an_empty_list_says_what_will_come_there(approver: Client, view: str, said: str) -> None:
    assert said in shown(approver, view=view)


def test_each_list_has_what_belongs_there_by_now(prices: Prices, approver: Client) -> None:
    waits, overdue, approved, unstarted, rejected = (prices.asked(to=number) for number in range(5))
    past = timezone.now() - timedelta(seconds=1)
    for approval, approve in ((approved, True), (unstarted, True), (rejected, False)):
        prices.decide(approval, approve=approve)
    Approval.objects.filter(pk=overdue.pk).update(expires_at=past)
    Approval.objects.filter(pk=unstarted.pk).update(start_before=past)

    def found(**query: Any) -> set[str]:
        return set(listed(approver, **query))

    def these(*approvals: Approval) -> set[str]:
        return {str(approval.pk) for approval in approvals}

    assert found() == found(view="waiting") == these(waits)
    assert found(view="running") == these(approved)
    assert found(view="decided") == these(overdue, unstarted, rejected)
    assert found(view="decided", state="expired") == these(overdue)
    assert found(view="decided", state="failed") == these(unstarted)
    assert found(view="decided", state="rejected") == these(rejected)
    assert found(tool="shop.run", key=prices.machine.key.public_id) == these(waits)  # type: ignore[union-attr]
    assert found(key="MACH") == these(waits)
    assert found(tool="shop.put") == found(key="another\x00") == set()
    assert "Nothing fits these filters" in shown(approver, key="another")


def test_what_one_voted_on_or_asked_for_waits_for_others(shop: Shop, prices: Prices, approver: Client) -> None:
    machine = factories.make_machine(owner=prices.owner, scopes=[SCOPE], requires_approval=True, approvers_needed=2)
    approval = Approval.objects.get(pk=machine.call("shop.run", {}).json()["approval_id"])
    prices.decide(approval)
    owner = browser_of(prices.owner)
    for client in (approver, owner):
        assert (listed(client), listed(client, view="waiting")) == ([], [str(approval.pk)])
    assert "It still needs the word of somebody else" in shown(approver, page_of(approval))


def test_pages_follow_each_other_without_a_gap(
    prices: Prices, approver: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approval_queue, "A_PAGE", 2)
    asked = [prices.asked(to=number) for number in range(5)]
    Approval.objects.update(created_at=timezone.now())
    seen: list[str] = []
    address = QUEUE
    for _ in range(3):
        body = approver.get(address).content.decode()
        seen += re.findall(r'id="row-([0-9a-f-]+)"', body)
        further = re.search(r'id="next" href="([^"]+)"', body)
        address = QUEUE + html.unescape(further[1]) if further else ""
    assert (sorted(seen), address) == (sorted(str(approval.pk) for approval in asked), "")


ODD_CURSORS = ["x", "WzEsMl0=", "\x00", "W10=", "WyIwMDAxLTAxLTAxVDAwOjAwOjAwKzIzOjU5IiwiYSJd"]


@pytest.mark.parametrize("cursor", ODD_CURSORS)
def test_an_odd_cursor_begins_at_the_start(prices: Prices, approver: Client, cursor: str) -> None:
    approval = prices.asked(to=5)
    assert listed(approver, cursor=cursor) == [str(approval.pk)]


def test_a_cursor_outside_of_the_calendar_is_none() -> None:
    at = approval_listing.cursor_of(Approval(created_at=timezone.now()))
    assert approval_listing.position(at)
    for created in ("0001-01-01T00:00:00+23:59", "2026-01-01T00:00:00"):
        text = f'["{created}", "{uuid4()}"]'.encode()
        with pytest.raises(ValueError, match="cursor"):
            approval_listing.position(urlsafe_b64encode(text).decode())


def test_a_list_costs_the_same_however_long_it_is(prices: Prices, approver: Client) -> None:
    def queries(**query: Any) -> int:
        with CaptureQueriesContext(
            connection,
        ) as found:
            approver.get(QUEUE, query)
        return len(found)

    def run(approval: Approval) -> None:
        prices.decide(approval)
        Approval.objects.filter(pk=approval.pk).update(state="running", attempt=1)
        lifesigns.begin(approval_state.work_of(Approval.objects.get(pk=approval.pk)))

    prices.asked(to="first")
    run(prices.asked(to=1))
    before = [queries(view=view) for view in approval_queue.View]
    for number in range(6):
        prices.asked(to=f"w{number}")
        run(prices.asked(to=f"r{number}"))
    assert [queries(view=view) for view in approval_queue.View] == before
    # Two of them are Django's, for the header's link to the chat.
    assert max(before) <= 12


def test_the_badge_costs_one_query_and_counts_what_waits_for_the_person(prices: Prices, approver: Client) -> None:
    def queries(client: Client) -> list[str]:
        with CaptureQueriesContext(connection) as found:
            client.get("/account/keys/")
        return [str(query["sql"]) for query in found.captured_queries]

    def badge(client: Client) -> str:
        found = re.search(r"Approvals (\d+) ", shown(client, "/account/keys/"))
        return found[1] if found else ""

    nobody = someone(PERMISSION)
    prices.asked(to=5)
    prices.asked(to=6)
    assert (badge(approver), badge(browser_of(prices.owner))) == ("2", "")
    queries(nobody)  # what is read once a process
    assert len(queries(approver)) == len(queries(nobody))
    assert sum("api_approval" in sql for sql in queries(approver)) == 1
    assert "Approvals" not in shown(nobody, "/account/keys/")
    assert "Approvals" in shown(browser_of(prices.owner), "/account/keys/")


def test_who_acts_as_a_role_without_the_right_has_neither_link_nor_queue(prices: Prices) -> None:
    approval = prices.asked(to=5)
    deciders, others = make_group(permissions=DECIDES), make_group(permissions=[PERMISSION])
    client = browser_of(make_user(groups=[deciders, others]))
    assert listed(client) == [str(approval.pk)]
    LiveSession.objects.update(acting_role=deciders)
    assert "Approvals 1" in shown(client, "/account/keys/")
    LiveSession.objects.update(acting_role=others)
    assert "Approvals" not in shown(client, "/account/keys/")
    assert "You decide no approvals" in shown(client, status=403)
    assert client.get(page_of(approval)).status_code == 404


# --- One approval -----------------------------------------------------------------------------------------------------


def test_the_page_shows_all_that_is_needed_to_decide(prices: Prices, approver: Client) -> None:
    before = prices.asked(to=5)
    prices.decide(before, approve=False, note="Not now.")
    other = prices.asked(to=9)
    prices.decide(other)
    runs.run(other.pk)
    text = shown(approver, page_of(prices.asked(to=5)))
    for expected in ("shop.run", "price price 9 5", '"extra": 1', "Who asks", "machine", prices.owner.get_username()):
        assert expected in text
    assert "The same, asked before" in text
    assert "1 done, 1 rejected in 90 days" in text
    assert approver.get(page_of(before)).content.decode().count("Not now.") == 2


def test_what_others_wrote_is_shown_as_text(prices: Prices, approver: Client) -> None:
    hostile = "<img src=x onerror=alert(1)></pre><script>"
    approval = prices.asked(to=hostile)
    Approval.objects.update(preview={"summary": hostile, "rows": [{"label": hostile, "after": {"a": hostile}}]})
    decide(approver, approval, "reject", note=hostile)
    for address in (page_of(approval), QUEUE + "?view=decided"):
        assert "<img" not in approver.get(address).content.decode().replace('<img src="/static', "")


@pytest.mark.alone
def test_a_handler_that_stopped_at_40_percent_reads_40_percent_on_the_pages(
    transactional_db: None, settings: Any, tmp_path: Path
) -> None:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    with registry.using(make_slow()):
        gate = Gate(tmp_path)
        machine = factories.make_machine(scopes=[WRITE], requires_approval=True)
        asked = machine.call("slow.import", {"gate": str(gate.path)}).json()["approval_id"]
        approval = Approval.objects.get(pk=asked)
        client = browser_of(make_user(permissions=[CHANGE, deciding.PERMISSION]))
        assert decide(client, approval).status_code == 302
        worker = threading.Thread(target=run_and_close, args=[approval])
        with gate.closed():
            worker.start()
            gate.wait_for("40")
            wait_until(lambda: "40 %" in shown(client, page_of(approval)))
            text = shown(client, page_of(approval))
            assert ("running It runs now" in text, '"done": 2' in text) == (True, True)
            assert "40 %" in shown(client, view="running")
        worker.join(30)
        text = shown(client, page_of(approval))
        assert "done It was run" in text
        assert '"imported": 5' in text


def run_and_close(approval: Approval) -> None:
    try:
        runs.run(approval.pk)
    finally:
        connections.close_all()


def test_the_result_is_shown_at_the_end(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    decide(approver, approval)
    runs.run(approval.pk)
    text = shown(approver, page_of(approval))
    assert "done It was run" in text
    assert '"ran": 1' in text


def test_a_failed_run_says_why_in_words(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    prices.fail = RuntimeError("a secret of the handler")
    decide(approver, approval)
    runs.run(approval.pk)
    text = shown(approver, page_of(approval))
    assert "failed It ended without a result" in text
    assert "a secret" not in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"expires_at": timezone.now() - timedelta(days=1)}, "Nobody decided it in time"),
        ({"state": "cancelled", "ended_at": timezone.now()}, "took it back"),
        ({"state": "failed", "code": "interrupted", "ended_at": timezone.now()}, "interrupted before it ended"),
        ({"state": "failed", "code": "changed", "ended_at": timezone.now()}, "kept changing"),
    ],
)
def test_one_that_ended_has_no_buttons_and_says_why(
    prices: Prices, approver: Client, change: dict[str, Any], said: str
) -> None:
    approval = prices.asked(to=5)
    assert 'id="approve"' in approver.get(page_of(approval)).content.decode()
    Approval.objects.update(**change)
    body = approver.get(page_of(approval))
    assert said in words(body)
    assert 'id="approve"' not in body.content.decode()


def test_a_cleared_input_is_said_to_be_gone(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    Approval.objects.update(arguments=None, preview=None, state="cancelled", ended_at=timezone.now())
    text = shown(approver, page_of(approval))
    assert "The preview is not kept any more" in text
    assert "The arguments are not kept any more" in text
    assert listed(approver, view="decided") == [str(approval.pk)]


def test_a_fragment_is_the_live_parts_without_what_the_page_has_already(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)

    def parts(address: str, **query: Any) -> list[str]:
        return re.findall(r'data-part="(\w+)"', approver.get(address, {"fragment": 1, **query}).content.decode())

    whole = parts(page_of(approval))
    assert {"badge", "state", "run", "preview", "arguments", "decide", "votes"} <= set(whole)
    assert set(parts(page_of(approval), seen=1)).isdisjoint({"preview", "arguments", "history"})
    assert parts(page_of(approval), seen=2) == whole
    assert parts(QUEUE) == ["badge", "said", "tabs", "list"]


# --- Who sees what ----------------------------------------------------------------------------------------------------


def test_a_visitor_is_sent_to_sign_in(prices: Prices) -> None:
    approval = prices.asked(to=5)
    for address in (QUEUE, page_of(approval), page_of(uuid4())):
        assert Client().get(address).headers["Location"] == f"/sign-in/?next={address}"
    assert Client().post(f"{page_of(approval)}decide").headers["Location"].startswith("/sign-in/")


@pytest.mark.parametrize("rights", [[], [PERMISSION], [deciding.PERMISSION]])
def test_who_lacks_one_of_the_two_permissions_gets_the_page_of_what_is_not_there(
    prices: Prices, rights: list[str]
) -> None:
    approval, stranger = prices.asked(to=5), someone(*rights)
    addresses = [page_of(approval), page_of(uuid4()), page_of("nonsense"), page_of("%00")]
    answers = {stranger.get(address).content for address in addresses}
    answers |= {decide(stranger, approval).content, decide(stranger, Approval()).content}
    assert len(answers) == 1
    assert {stranger.get(address).status_code for address in addresses} == {404}
    assert (state(approval), Vote.objects.count()) == (("pending", ""), 0)
    assert stranger.get(QUEUE).status_code == (200 if deciding.PERMISSION in rights else 403)
    assert listed(stranger, view="waiting") == []


def test_who_asks_sees_it_without_buttons_and_is_told_why(prices: Prices) -> None:
    approval, owner = prices.asked(to=5), browser_of(prices.owner)
    assert "Who asks can't decide" in shown(owner, page_of(approval))
    assert 'id="approve"' not in owner.get(page_of(approval)).content.decode()
    answer = decide(owner, approval)
    assert (answer.status_code, state(approval)) == (403, ("pending", ""))
    assert "Nothing was decided: who asks can't decide" in words(answer)


def test_an_impersonator_looks_and_decides_nothing(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    operator = factories.make_owner(superuser=True, is_staff=True)
    LiveSession.objects.filter(user=prices.approver.user).update(impersonator=operator)
    assert "you may look, not decide" in shown(approver, page_of(approval))
    assert 'id="approve"' not in approver.get(page_of(approval)).content.decode()
    assert (decide(approver, approval).status_code, state(approval)) == (403, ("pending", ""))


def test_the_form_needs_its_token(prices: Prices) -> None:
    approval = prices.asked(to=5)
    client = browser_of(prices.approver.user, enforce_csrf_checks=True)
    assert decide(client, approval).status_code == 403
    assert state(approval) == ("pending", "")


def test_other_methods_are_refused(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    assert approver.post(QUEUE).status_code == approver.post(page_of(approval)).status_code == 405
    assert approver.get(f"{page_of(approval)}decide").headers["Location"] == page_of(approval)


# --- The word ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("word", "then"), [("approve", "approved"), ("reject", "rejected")])
def test_a_word_with_a_note_decides_and_leads_back_to_the_page(
    prices: Prices, approver: Client, word: str, then: str
) -> None:
    approval = prices.asked(to=5)
    answer = decide(approver, approval, word, note=" Fine,\r\nbut once. ")
    assert (answer.status_code, answer.headers["Location"]) == (302, page_of(approval))
    vote = Vote.objects.get()
    assert (vote.decision, vote.note, vote.voter) == (word, "Fine,\nbut once.", prices.approver.user)
    assert state(approval) == (then, "")
    entry = Entry.objects.get(action="api.approval_decided")
    assert (entry.actor_uuid, entry.mode) == (str(prices.approver.user.pk), "manual")
    assert f"You {then} it" in shown(approver, page_of(approval))


def test_a_double_click_is_one_vote_and_no_refusal(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    answers = [decide(approver, approval) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [302, 302]
    assert (Vote.objects.count(), Entry.objects.filter(action="api.approval_decided").count()) == (1, 1)


def test_a_stale_page_decides_nothing_and_shows_the_new_preview_with_the_note(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    prices.decide(approval)
    put("price", 7)
    runs.run(approval.pk)
    answer = decide(approver, approval, note="I had looked.")
    text = words(answer)
    assert (answer.status_code, state(approval)) == (409, ("pending", ""))
    assert "Below is the new preview" in text
    assert "price price 7 5" in text
    assert "I had looked." in text
    assert "Counts no more" in text
    assert 'name="preview_version" value="2"' in answer.content.decode()
    assert decide(approver, approval, version=2).status_code == 302


def expire(prices: Prices, approval: Approval) -> None:
    Approval.objects.update(expires_at=timezone.now() - timedelta(seconds=1))


def decide_elsewhere(prices: Prices, approval: Approval) -> None:
    prices.decide(approval, approve=False)
    Vote.objects.update(voter=None)


@pytest.mark.parametrize(
    ("meanwhile", "said"), [(expire, "expired It was not run"), (decide_elsewhere, "rejected It was not run")]
)
def test_a_word_that_comes_too_late_shows_what_happened(
    prices: Prices, approver: Client, meanwhile: Callable[[Prices, Approval], None], said: str
) -> None:
    approval = prices.asked(to=5)
    meanwhile(prices, approval)
    answer = decide(approver, approval)
    assert answer.status_code == 409
    assert "before your word arrived" in words(answer)
    assert said in words(answer)


@pytest.mark.parametrize(
    "form",
    [
        {"decision": "perhaps", "preview_version": "1"},
        {"preview_version": "1"},
        {"decision": "approve"},
        {"decision": "approve", "preview_version": "-1"},
        {"decision": "approve", "preview_version": "9" * 30},
        {"decision": "approve", "preview_version": "1", "note": "n" * 2001},
        {"decision": "approve", "preview_version": "1", "note": "\x00"},
    ],
)
def test_an_odd_form_decides_nothing(prices: Prices, approver: Client, form: dict[str, str]) -> None:
    approval = prices.asked(to=5)
    answer = approver.post(f"{page_of(approval)}decide", form)
    assert (answer.status_code, state(approval)) == (422, ("pending", ""))
    assert "Nothing was decided" in words(answer)


def test_a_session_that_ended_meanwhile_signs_in_again(prices: Prices, approver: Client) -> None:
    approval = prices.asked(to=5)
    LiveSession.objects.update(ended_at=timezone.now(), end_reason=LiveSession.EndReason.REVOKED)
    assert decide(approver, approval).headers["Location"].startswith("/sign-in/")
    assert state(approval) == ("pending", "")
