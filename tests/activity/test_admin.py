"""The log in the admin site: it shows and finds, changes nothing, and asks the database no question that grows."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.activity import admin as activity_admin
from apps.activity import log
from tests.activity.test_entries import make_entry

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]
LIST = "/admin/activity/entry/"


@pytest.fixture
def operator(client: Client) -> Client:
    """A signed-in superuser."""
    people = get_user_model()
    names = {people.USERNAME_FIELD: "operator@example.org"}
    client.force_login(people._default_manager.create(is_staff=True, is_superuser=True, **names))
    return client


def page(client: Client, **query: str) -> str:
    answer = client.get(LIST, query)
    assert answer.status_code == 200
    return str(answer.content.decode())


@pytest.mark.parametrize(
    "query",
    [
        {"action": "catalogue.update_prices"},
        {"module": "other"},
        {"mode__exact": "cron"},
        {"actor_kind__exact": "system"},
        {"q": "the-request"},
        {"q": "the-actor"},
        {"q": "the-resource"},
    ],
)
def test_the_list_finds_one_entry_among_others(operator: Client, query: dict[str, str]) -> None:
    make_entry(target="an ordinary one")
    make_entry(
        action="catalogue.update_prices",
        module="other",
        mode=log.Mode.CRON,
        actor=log.Actor(kind="system", uuid="the-actor"),
        resource_uuid="the-resource",
        request_id="the-request",
        target="the wanted one",
    )

    found = page(operator, **query)

    assert "the wanted one" in found
    assert "an ordinary one" not in found


def test_the_list_finds_an_entry_by_its_own_id(operator: Client) -> None:
    entry = make_entry(target="the wanted one")
    make_entry(target="an ordinary one")

    assert "an ordinary one" not in page(operator, q=str(entry.uuid))
    assert "the wanted one" in page(operator, q=str(entry.uuid))


def test_the_filters_offer_the_values_that_there_are(operator: Client) -> None:
    make_entry(module="beta")
    make_entry(module="alpha")
    make_entry(module="")

    assert activity_admin._distinct("module") == ["", "alpha", "beta"]
    assert "?module=alpha" in page(operator)


def test_the_list_counts_no_further_than_its_bound(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity_admin, "COUNTED", 2)
    for _ in range(4):
        make_entry()

    with CaptureQueriesContext(connection) as queries:
        page(operator)

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"] and "activity_entry" in query["sql"]]
    assert counts
    assert all("LIMIT 2" in sql for sql in counts)


def test_an_entry_is_shown_whole_and_says_that_it_is_intact(operator: Client) -> None:
    entry = make_entry(metadata={"outcome": "<b>ok</b>"})

    shown = operator.get(f"{LIST}{entry.uuid}/change/").content.decode()

    assert "&lt;b&gt;ok&lt;/b&gt;" in shown
    assert entry.mac in shown
    assert "icon-yes" in shown


def test_nobody_adds_changes_or_removes_an_entry(operator: Client) -> None:
    entry = make_entry()
    calls: list[Any] = [
        operator.post(f"{LIST}add/", {"action": "x.y"}),
        operator.post(f"{LIST}{entry.uuid}/change/", {"action": "x.y"}),
        operator.post(f"{LIST}{entry.uuid}/delete/", {"post": "yes"}),
    ]

    assert [answer.status_code for answer in calls] == [403, 403, 403]
    assert "delete_selected" not in page(operator)


def test_a_person_without_the_permission_sees_nothing(client: Client) -> None:
    people = get_user_model()
    names = {people.USERNAME_FIELD: "stranger@example.org"}
    client.force_login(people._default_manager.create(is_staff=True, **names))

    assert client.get(LIST).status_code == 403
