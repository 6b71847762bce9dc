"""Settling an unknown outcome in the admin site: the notice, the question, one word, one entry."""

from typing import Any

import pytest
from django.test import Client

from apps.api.models import IdempotencyRecord
from tests.api import factories
from tests.api.test_admin_keys import entries, make_staff, page, signed_in, together
from tests.api.test_admin_records import RECORDS, State, details

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]
UNKNOWN = f"{RECORDS}?state=unknown"


@pytest.fixture
def person() -> Any:
    return make_staff("api.settle_idempotency")


@pytest.fixture
def operator(client: Client, person: Any) -> Client:
    """Signed in, with the right to settle and no other."""
    client.force_login(person)
    return client


def make_unknown(**fields: Any) -> IdempotencyRecord:
    return factories.make_record(state=State.UNKNOWN, external=True, tool="probe.send", **fields)


def settle_page(record: IdempotencyRecord, *, happened: bool) -> str:
    return f"{RECORDS}{record.pk}/{'happened' if happened else 'did-not-happen'}/"


# --- The notice


def test_index_and_list_tell_of_unknown_outcomes(operator: Client) -> None:
    for address in ("/admin/", RECORDS):
        assert "without anybody knowing" not in page(operator, address)
    make_unknown()
    for address in ("/admin/", RECORDS):
        shown = page(operator, address)
        assert "One call ended without anybody knowing" in shown
        assert f'href="{UNKNOWN}"' in shown
    make_unknown()
    assert "2 calls ended without anybody knowing" in page(operator, "/admin/")


def test_the_notice_is_for_those_who_see_the_records() -> None:
    make_unknown()
    told = {
        permission: "without anybody knowing" in page(signed_in(make_staff(permission)), "/admin/")
        for permission in ("api.view_apikey", "api.view_idempotencyrecord", "api.settle_idempotency")
    }
    assert list(told.values()) == [False, True, True]


def test_a_great_many_are_counted_to_a_bound(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apps.api.admin.settling.COUNTED", 2)
    for _ in range(3):
        make_unknown()
    assert "2 or more calls ended" in page(operator, "/admin/")


# --- The buttons


@pytest.mark.parametrize(("happened", "said"), [(True, "settled_as_done"), (False, "does it a second time")])
def test_the_question_says_what_follows_and_changes_nothing(operator: Client, happened: bool, said: str) -> None:
    record = make_unknown(key="nightly 7")
    assert settle_page(record, happened=happened) in page(operator, details(record))
    shown = page(operator, settle_page(record, happened=happened))
    assert said in shown
    assert "nightly 7" in shown
    assert IdempotencyRecord.objects.get().state == State.UNKNOWN
    assert not entries("api.idempotency_settled")


def test_what_happened_is_done(operator: Client, person: Any) -> None:
    record = make_unknown(request_id="first")
    answer = operator.post(
        settle_page(record, happened=True), {"post": "yes"}, follow=True, headers={"X-Request-ID": "the-request"}
    )
    assert answer.redirect_chain == [(UNKNOWN, 302)]
    assert "1 outcome settled." in answer.content.decode()
    assert IdempotencyRecord.objects.get().state == State.DONE
    (entry,) = entries("api.idempotency_settled")
    assert (entry.mode, entry.actor_uuid, entry.resource_uuid) == ("manual", str(person.pk), str(record.pk))
    assert (entry.request_id, entry.target) == ("the-request", "probe.send")
    assert entry.metadata == {"happened": True, "caller": record.caller, "first_request_id": "first"}


def test_what_did_not_happen_is_gone_and_can_be_asked_for_again(operator: Client) -> None:
    record = make_unknown()
    operator.post(settle_page(record, happened=False), {"post": "yes"})
    assert not IdempotencyRecord.objects.exists()
    (entry,) = entries("api.idempotency_settled")
    assert (entry.resource_uuid, entry.metadata["happened"]) == (str(record.pk), False)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_a_second_word_is_told_that_it_was_settled_already(operator: Client, first: bool, second: bool) -> None:
    record = make_unknown()
    operator.post(settle_page(record, happened=first), {"post": "yes"})
    for method in (operator.get, operator.post):
        answer = method(settle_page(record, happened=second), follow=True)
        assert "it was settled already" in answer.content.decode()
    assert len(entries("api.idempotency_settled")) == 1
    assert IdempotencyRecord.objects.filter(state=State.DONE).count() == int(first)


@pytest.mark.parametrize("state", [State.RUNNING, State.WAITING, State.DONE])
def test_only_an_unknown_outcome_is_settled(operator: Client, state: IdempotencyRecord.State) -> None:
    record = factories.make_record(state=state)
    assert "It happened" not in page(operator, details(record))
    for happened in (True, False):
        operator.post(settle_page(record, happened=happened), {"post": "yes"})
    assert IdempotencyRecord.objects.get().state == state
    assert not entries("api.idempotency_settled")


# --- The actions


@pytest.mark.parametrize(("action", "left"), [("settle_as_happened", 2), ("settle_as_not_happened", 0)])
def test_the_action_asks_and_settles_each_with_an_entry(operator: Client, action: str, left: int) -> None:
    records = [make_unknown(key=f"night {number}") for number in range(3)]
    other = factories.make_record(key="night 9")
    chosen = [str(record.pk) for record in (*records[:2], other)]
    data = {"action": action, "_selected_action": chosen}
    asked = operator.post(RECORDS, data).content.decode()
    assert ["night 0" in asked, "night 2" in asked, "night 9" in asked] == [True, False, False]
    assert not entries("api.idempotency_settled")

    answer = operator.post(RECORDS, {**data, "post": "yes"}, follow=True)

    assert "2 outcomes settled." in answer.content.decode()
    assert {entry.resource_uuid for entry in entries("api.idempotency_settled")} == set(chosen[:2])
    assert IdempotencyRecord.objects.filter(pk__in=chosen[:2]).count() == left
    assert IdempotencyRecord.objects.get(pk=records[2].pk).state == State.UNKNOWN
    assert IdempotencyRecord.objects.get(pk=other.pk).state == State.RUNNING


def test_the_action_takes_all_of_the_filter(operator: Client) -> None:
    records = [make_unknown() for _ in range(22)]
    data = {"action": "settle_as_happened", "_selected_action": [str(records[0].pk)], "select_across": "1"}
    asked = operator.post(UNKNOWN, data).content.decode()
    assert 'name="select_across" value="1"' in asked
    assert "and more" in asked
    operator.post(UNKNOWN, {**data, "post": "yes"})
    assert IdempotencyRecord.objects.filter(state=State.DONE).count() == len(entries("api.idempotency_settled")) == 22


def test_the_action_on_settled_ones_says_so(operator: Client) -> None:
    record = factories.make_record(state=State.DONE)
    answer = operator.post(RECORDS, {"action": "settle_as_happened", "_selected_action": [str(record.pk)]}, follow=True)
    assert "it was settled already" in answer.content.decode()


# --- Who may


def test_outcomes_are_settled_by_those_who_may(client: Client) -> None:
    record = make_unknown()
    address = settle_page(record, happened=False)
    assert client.post(address)["Location"].startswith("/admin/login/")
    assert signed_in(factories.make_owner()).post(address).status_code == 302
    for staff in (make_staff(), make_staff("api.view_idempotencyrecord", "api.change_idempotencyrecord")):
        visitor = signed_in(staff)
        assert visitor.get(address).status_code == 403
        assert visitor.post(address, {"post": "yes"}).status_code == 403
        data = {"action": "settle_as_not_happened", "_selected_action": [str(record.pk)], "post": "yes"}
        visitor.post(RECORDS, data)
    assert address not in page(signed_in(make_staff("api.view_idempotencyrecord")), details(record))
    assert IdempotencyRecord.objects.get().state == State.UNKNOWN
    assert not entries("api.idempotency_settled")


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_operators_at_once_one_has_the_word() -> None:
    record = make_unknown()
    clients = [signed_in(make_staff("api.settle_idempotency")) for _ in range(2)]
    words = iter([(clients[0], True), (clients[1], False)])

    def settle() -> str:
        client, happened = next(words)
        answer = client.post(settle_page(record, happened=happened), {"post": "yes"}, follow=True)
        return str(answer.content.decode())

    answers = together(2, settle)

    assert sum("1 outcome settled." in answer for answer in answers) == 1
    assert sum("it was settled already" in answer for answer in answers) == 1
    (entry,) = entries("api.idempotency_settled")
    assert IdempotencyRecord.objects.filter(state=State.DONE).count() == int(entry.metadata["happened"])
