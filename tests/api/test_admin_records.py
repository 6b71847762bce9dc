"""Confirmations and idempotency records in the admin site: what an operator finds there at night, and what nobody finds."""

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.activity import admin as activity_admin
from apps.api import lifesigns
from apps.api.lifesigns import Work
from apps.api.models import Confirmation, IdempotencyRecord, Lifesign
from tests.api import factories
from tests.api.factories import Machine
from tests.api.test_admin_keys import make_staff, page, signed_in

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]

RECORDS, CONFIRMATIONS = "/admin/api/idempotencyrecord/", "/admin/api/confirmation/"
State = IdempotencyRecord.State


@pytest.fixture
def operator(client: Client, transactional_db: None) -> Client:
    """A signed-in superuser."""
    client.force_login(factories.make_owner(superuser=True))
    return client


def details(row: Any) -> str:
    return f"/admin/api/{row._meta.model_name}/{row.pk}/change/"


def states(shown: str) -> list[str]:
    return re.findall(r'class="th-state th-(\w+)"', shown)


# --- What both lists do


def test_a_call_leaves_rows_that_lead_to_its_key_and_its_entry(operator: Client, machine: Machine) -> None:
    assert machine.key is not None
    answer = machine.call("probe.act", {"idempotency_key": "nightly 7"}, headers={"X-Request-ID": "the-request"})
    code = answer.json()["confirm_token"]
    for address, row in ((RECORDS, IdempotencyRecord.objects.get()), (CONFIRMATIONS, Confirmation.objects.get())):
        for shown in (page(operator, address), page(operator, details(row))):
            assert f'/admin/api/apikey/?family={machine.key.family_id}">machine<' in shown
            assert "/admin/activity/entry/?q=the-request" in shown
            assert "probe.act" in shown
            assert code not in shown
    assert "nightly 7" in page(operator, RECORDS)
    assert "machine" in page(operator, "/admin/api/apikey/", family=str(machine.key.family_id))
    assert "api.request" in page(operator, "/admin/activity/entry/", q="the-request")


def test_no_page_shows_what_is_kept_in_place_of_a_value_nor_an_answer(operator: Client) -> None:
    secrets = {"input_hash": "a" * 64, "fingerprint": "b" * 40, "digest": "c" * 64}
    confirmation = factories.make_confirmation(caller="token:" + "d" * 64, **secrets)
    record = factories.make_record(
        caller="token:" + "d" * 64, state=State.DONE, input_hash="a" * 64, body=b'{"answer": "eeeeeeeeeeee"}'
    )
    for address in (CONFIRMATIONS, RECORDS, details(confirmation), details(record)):
        assert not re.search(r"a{20}|b{20}|c{20}|d{20}|e{10}|ZWVlZWVl", page(operator, address))
    assert "visitor dddddddd" in page(operator, RECORDS)


def test_a_long_key_is_cut_in_the_list_and_whole_on_its_page(operator: Client) -> None:
    record = factories.make_record(key="k" * 255, request_id="")
    assert f">{'k' * 20}…<" in page(operator, RECORDS)
    assert f">{'k' * 255}<" in page(operator, details(record))


def test_the_search_finds_whole_ids_and_keys(operator: Client) -> None:
    key, _ = factories.make_key()
    fields = {"caller": f"key:{key.family_id}", "request_id": "the-request", "tool": "probe.wanted"}
    record = factories.make_record(**fields, key="nightly 7")
    confirmation = factories.make_confirmation(**fields)
    factories.make_record(tool="probe.other", request_id="the-request-2", key="nightly 77")
    factories.make_confirmation(tool="probe.other", request_id="the-request-2")
    common = [key.public_id, str(key.family_id), "the-request"]
    for address, terms in (
        (RECORDS, [*common, str(record.pk), " nightly 7 "]),
        (CONFIRMATIONS, [*common, str(confirmation.pk)]),
    ):
        for term in terms:
            shown = page(operator, address, q=term)
            assert (term, "probe.wanted" in shown, "probe.other" in shown) == (term, True, False)
        assert "probe.wanted" not in page(operator, address, q="nobodysid123")


def test_the_filter_of_tools_offers_the_writes(operator: Client) -> None:
    factories.make_record(key="wanted", tool="probe.act")
    factories.make_record(key="other", tool="probe.store")
    shown = page(operator, RECORDS, tool="probe.act")
    assert "wanted" in shown
    assert ">other<" not in shown
    assert "?tool=probe.store" in shown
    assert "?tool=probe.echo" not in shown


@pytest.mark.parametrize(("address", "make"), [(RECORDS, "make_record"), (CONFIRMATIONS, "make_confirmation")])
def test_a_list_counts_to_a_bound_and_asks_the_same_for_many_rows(
    operator: Client, monkeypatch: pytest.MonkeyPatch, address: str, make: str
) -> None:
    monkeypatch.setattr(activity_admin, "COUNTED", 2)
    page(operator, address)  # what a process looks up once
    asked = []
    for _ in range(2):
        for _ in range(3):
            getattr(factories, make)(caller=f"key:{factories.make_key()[0].family_id}")
        Lifesign.objects.bulk_create(
            Lifesign(kind="call", uuid=row.pk, attempt=row.attempt, seen_at=timezone.now())
            for row in IdempotencyRecord.objects.exclude(pk__in=Lifesign.objects.values("uuid"))
        )
        with CaptureQueriesContext(connection) as queries:
            page(operator, address)
        asked.append(len(queries))
    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"] and "unknown" not in query["sql"]]
    assert asked[0] == asked[1]
    assert counts
    assert all("LIMIT 2" in sql for sql in counts)


def test_nobody_adds_changes_or_deletes_a_row(operator: Client) -> None:
    for address, row in ((RECORDS, factories.make_record()), (CONFIRMATIONS, factories.make_confirmation())):
        assert operator.get(f"{address}add/").status_code == 403
        assert operator.post(details(row), {"state": "used"}).status_code == 403
        assert operator.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403
        operator.post(address, {"action": "delete_selected", "_selected_action": [str(row.pk)], "post": "yes"})
        assert type(row).objects.get() == row


@pytest.mark.parametrize(
    ("address", "permission"), [(RECORDS, "api.view_idempotencyrecord"), (CONFIRMATIONS, "api.view_confirmation")]
)
def test_a_stranger_sees_no_row(client: Client, address: str, permission: str) -> None:
    row: Any = factories.make_record() if address == RECORDS else factories.make_confirmation()
    for place in (address, details(row)):
        assert client.get(place)["Location"].startswith("/admin/login/")
        assert signed_in(factories.make_owner()).get(place).status_code == 302
        assert signed_in(make_staff("api.view_apikey")).get(place).status_code == 403
        assert signed_in(make_staff(permission)).get(place).status_code == 200


def test_the_history_of_a_row_is_what_the_log_knows_of_it(operator: Client) -> None:
    row = factories.make_record()
    answer = operator.get(f"{RECORDS}{row.pk}/history/")
    assert answer["Location"] == f"/admin/activity/entry/?q={row.pk}"


# --- Confirmations


@pytest.mark.parametrize("state", ["waiting", "used", "rejected", "expired"])
def test_the_filter_of_confirmations_finds_what_the_column_says(operator: Client, state: str) -> None:
    now = timezone.now()
    for name in Confirmation.State.values:
        factories.make_confirmation(state=name, decided_at=None if name == "waiting" else now)
    over = factories.make_confirmation(expires_at=now - timedelta(seconds=1), tool="probe.over")
    shown = page(operator, CONFIRMATIONS, state=state)
    assert set(states(shown)) == {state}
    assert ("probe.over" in shown) == (state == "expired")
    assert states(page(operator, details(over))) == ["expired"]


def test_an_odd_state_filters_nothing(operator: Client) -> None:
    factories.make_confirmation()
    factories.make_record()
    assert states(page(operator, CONFIRMATIONS, state="odd")) == ["waiting"]
    assert states(page(operator, RECORDS, state="odd")) == ["running"]


# --- Idempotency records


def test_unknown_outcomes_are_the_first_filter(operator: Client) -> None:
    for state in State:
        factories.make_record(state=state)
    shown = page(operator, RECORDS)
    assert re.findall(r'href="\?state=(\w+)"', shown) == ["unknown", "running", "waiting", "done"]
    for state in State:
        assert states(page(operator, RECORDS, state=state.value)) == [state.value]


def test_a_running_record_says_whether_somebody_is_at_work(operator: Client) -> None:
    with time_machine.travel(timezone.now() - timedelta(minutes=5), tick=True):
        record = factories.make_record()
    assert re.search(r"first asked 5\W?minutes ago; no sign of life<", page(operator, RECORDS))
    lifesigns.begin(Work(kind="call", uuid=record.pk, attempt=1))
    for address in (RECORDS, details(record)):
        assert re.search(r"first asked 5\W?minutes ago; gives signs of life<", page(operator, address))


def test_a_running_record_whose_worker_is_gone_says_for_how_long(operator: Client) -> None:
    record = factories.make_record(attempt=2)
    sign = Lifesign.objects.create(
        kind="call", uuid=record.pk, attempt=2, seen_at=timezone.now() - timedelta(minutes=3)
    )
    assert re.search(r"no sign of life for 3\W?minutes<", page(operator, RECORDS))
    Lifesign.objects.filter(pk=sign.pk).update(attempt=1)
    assert "no sign of life<" in page(operator, RECORDS)


def test_a_record_without_a_callers_key_says_so(operator: Client) -> None:
    record = factories.make_record(key="\x1f" + "0" * 32, request_id="", caller="public")
    shown = page(operator, details(record))
    assert "none came" in shown
    assert "a visitor" in shown
