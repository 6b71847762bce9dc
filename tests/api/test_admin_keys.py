"""API keys in the admin site: listed, found, made once, changed, revoked, and never shown again."""

import html
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.db import connection, connections
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.activity import admin as activity_admin
from apps.activity.models import Entry
from apps.api import key_text, keys
from apps.api.models import ApiKey
from apps.api.models.key import KeyState
from tests.api import factories, probe

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]
LIST = "/admin/api/apikey/"
ADD = f"{LIST}add/"


@pytest.fixture
def person() -> Any:
    return factories.make_owner(superuser=True)


@pytest.fixture
def operator(client: Client, person: Any) -> Client:
    """A signed-in superuser."""
    client.force_login(person)
    return client


def make_staff(*permissions: str) -> Any:
    return factories.make_owner(is_staff=True, permissions=permissions)


def signed_in(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def page(client: Client, address: str, **query: str) -> str:
    answer = client.get(address, query)
    assert answer.status_code == 200
    return str(answer.content.decode())


def filled(client: Client, address: str, **changes: Any) -> dict[str, Any]:
    """What a browser would send from this form, with some fields filled in; None leaves a field out."""
    form = client.get(address).context["adminform"].form
    data: dict[str, Any] = {}
    for bound in form:
        value = bound.value()
        match value:
            case None | False:
                pass
            case list() if bound.name == "expires_at":
                data |= {f"{bound.name}_{place}": part or "" for place, part in enumerate(value)}
            case _ if bound.name == "expires_at":
                data |= {"expires_at_0": f"{value:%Y-%m-%d}", "expires_at_1": f"{value:%H:%M:%S}"}
            case True:
                data[bound.name] = "on"
            case _:
                data[bound.name] = value
    return {name: value for name, value in {**data, **changes}.items() if value is not None}


def change_page(key: ApiKey) -> str:
    return f"{LIST}{key.pk}/change/"


def entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action))


# --- The list


def test_the_list_shows_what_a_key_is(operator: Client) -> None:
    owner = factories.make_owner()
    key, _ = factories.make_key(owner=owner, name="Nightly prices", scopes=[probe.READ])
    shown = page(operator, LIST)
    assert all(text in shown for text in ["Nightly prices", key.public_id, owner.email, probe.READ, ">active<"])
    assert key.digest not in shown


@pytest.mark.parametrize("state", ["active", "grace", "exposed", "expired", "revoked"])
def test_the_filter_of_states_finds_what_the_column_says(operator: Client, state: str) -> None:
    now = timezone.now()
    past, expired = now - timedelta(days=1), {"expires_at": now - timedelta(hours=1)}
    successor, _ = factories.make_key(name="the successor")
    made: dict[str, dict[str, Any]] = {
        "active": {"expires_at": now + timedelta(hours=1)},
        "grace": {"successor": successor, "expires_at": now + timedelta(hours=1)},
        "exposed": {"exposed_at": past},
        "expired": {"exposed_at": past, **expired},
        "revoked": {"revoked_at": past, "exposed_at": past, **expired},
    }
    for name, fields in made.items():
        key, _ = factories.make_key(name=f"is {name}")
        ApiKey.objects.filter(pk=key.pk).update(**fields)

    shown = page(operator, LIST, state=state)

    assert re.findall(r">is (\w+)<", shown) == [state]
    assert f'class="th-state th-{state}">{KeyState(state).label}<' in shown


def test_a_state_that_there_is_not_filters_nothing(operator: Client) -> None:
    factories.make_key(name="some key")
    assert "some key" in page(operator, LIST, state="odd")


def test_the_other_filters_narrow_the_list(operator: Client) -> None:
    careful, _ = factories.make_key(name="careful one", requires_approval=True)
    factories.make_key(name="other one")
    for query in ({"requires_approval__exact": "1"}, {"owner": str(careful.owner_id)}):
        shown = page(operator, LIST, **query)
        assert "careful one" in shown
        assert "other one" not in shown


def test_the_search_finds_by_name_id_and_owner(operator: Client) -> None:
    key, _ = factories.make_key(name="wanted one", owner=factories.make_owner())
    factories.make_key(name="other one")
    for term in ("wanted", key.public_id, str(key.owner)):
        answer = operator.post(f"{LIST}find/", {"q": term}, follow=True)
        assert "wanted one" in answer.content.decode()
        assert "other one" not in answer.content.decode()


def test_the_search_keeps_the_filters(operator: Client) -> None:
    answer = operator.post(f"{LIST}find/", {"q": "wanted", "state": "active"})
    assert answer["Location"] == f"{LIST}?q=wanted&state=active"
    assert '<input type="hidden" name="state" value="active">' in page(operator, LIST, state="active")


def test_a_pasted_key_is_found_by_its_id_and_stands_in_no_address(operator: Client) -> None:
    key, text = factories.make_key()
    answer = operator.post(f"{LIST}find/", {"q": f" {text} "})
    assert answer["Location"] == f"{LIST}?q=+{key.public_id}+"
    key.refresh_from_db()
    assert key.exposed_at is None


def test_a_key_in_the_lists_address_counts_as_exposed_and_leaves_it(operator: Client) -> None:
    key, text = factories.make_key(name="wanted one")
    answer = operator.get(LIST, {"q": text}, follow=True)
    assert answer.redirect_chain == [(f"{LIST}?q={key.public_id}", 302)]
    assert "counts as exposed" in answer.content.decode()
    assert text not in answer.content.decode()
    assert [entry.resource_uuid for entry in entries("api.key_exposed")] == [str(key.pk)]


def test_the_search_is_no_door_for_others(client: Client) -> None:
    assert client.post(f"{LIST}find/", {"q": "x"})["Location"].startswith("/admin/login/")
    assert signed_in(make_staff()).post(f"{LIST}find/", {"q": "x"}).status_code == 403
    assert signed_in(make_staff("api.view_apikey")).get(f"{LIST}find/").status_code == 405


def test_the_list_counts_to_a_bound_and_asks_the_same_for_many_keys(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activity_admin, "COUNTED", 2)
    asked = []
    for _ in range(2):
        for _ in range(3):
            factories.make_key(owner=factories.make_owner())
        with CaptureQueriesContext(connection) as queries:
            page(operator, LIST)
        asked.append(len(queries))

    counts = [query["sql"] for query in queries if "COUNT(" in query["sql"] and "api_apikey" in query["sql"]]
    assert asked[0] == asked[1]
    assert counts
    assert all("LIMIT 2" in sql for sql in counts)


# --- Made once


def test_a_key_is_made_with_what_the_form_says_and_its_text_is_shown(operator: Client, person: Any) -> None:
    owner = factories.make_owner()
    data = filled(
        operator,
        ADD,
        owner=owner.email.upper(),
        name="Nightly prices",
        scopes=[probe.READ, probe.WRITE],
        networks="203.0.113.0/24\n\n 2001:db8::/32\n203.0.113.0/24",
        budget="50",
        requires_approval="on",
        approvers_needed="2",
        expires_at_0="2999-01-02",
        expires_at_1="03:04:05",
    )
    answer = operator.post(ADD, data)

    key = ApiKey.objects.get()
    (text,) = set(key_text.PATTERN.findall(answer.content.decode()))
    assert (key.public_id, key.owner, key.created_by) == (key_text.public_id(text), owner, person)
    assert keys.grant_of(key) == keys.Grant(
        name="Nightly prices",
        scopes=[probe.READ, probe.WRITE],
        networks=["203.0.113.0/24", "2001:db8::/32"],
        budget=50,
        requires_approval=True,
        approvers_needed=2,
        expires_at=datetime(2999, 1, 2, 3, 4, 5, tzinfo=UTC),
    )
    assert "no-store" in answer["Cache-Control"]
    assert f'Bearer {text}" \\\n  http://testserver/api/v1/tools' in html.unescape(answer.content.decode())


def test_making_a_key_leaves_one_entry_of_the_person(operator: Client, person: Any) -> None:
    operator.post(
        ADD, filled(operator, ADD, name="x"), headers={"X-Request-ID": "the-request"}, REMOTE_ADDR="192.0.2.7"
    )
    (entry,) = entries("api.key_created")
    assert (entry.mode, entry.actor_kind, entry.actor_uuid) == ("manual", "user", str(person.pk))
    assert (entry.request_id, entry.ip, entry.resource_uuid) == (
        "the-request",
        "192.0.2.7",
        str(ApiKey.objects.get().pk),
    )


def test_the_text_of_a_key_is_kept_nowhere(operator: Client, capfd: pytest.CaptureFixture[str]) -> None:
    answer = operator.post(ADD, filled(operator, ADD, name="x"))
    (text,) = set(key_text.PATTERN.findall(answer.content.decode()))
    secret = text.split("_")[3]

    stored = [str(row) for model in apps.get_models() for row in model._default_manager.values()]
    later = [page(operator, address) for address in (LIST, ADD, change_page(ApiKey.objects.get()), "/admin/")]

    assert any(key_text.public_id(text) in row for row in stored)
    assert not [row for row in stored if secret in row]
    assert not [shown for shown in later if secret in shown]
    assert secret not in f"{capfd.readouterr()}{operator.cookies}{dict(operator.session)}"


def test_a_reload_of_the_page_makes_no_second_key(operator: Client) -> None:
    data = filled(operator, ADD, name="x")
    operator.post(ADD, data)
    again = operator.post(ADD, data).content.decode()
    assert ApiKey.objects.count() == 1
    assert not key_text.PATTERN.search(again)
    assert "This form was sent before" in again


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"owner": "nobody@example.org"}, "There is nobody with this address."),
        ({"owner": "\x00"}, "Null characters are not allowed."),
        ({"name": ""}, "This field is required."),
        ({"scopes": ["probe:unknown"]}, "is not one of the available choices"),
        ({"networks": "203.0.113.0/24\n203.0.113.1/24"}, "203.0.113.1/24 is no network in CIDR form."),
        ({"networks": "<b>"}, "&lt;b&gt; is no network in CIDR form."),
        ({"budget": "19"}, "greater than or equal to 20"),
        ({"approvers_needed": "0"}, "greater than or equal to 1"),
        ({"expires_at_0": "2001-01-01", "expires_at_1": "00:00:00"}, "That is in the past."),
        ({"once": "odd"}, "This form was sent before"),
    ],
)
def test_an_odd_form_makes_no_key_and_says_why(operator: Client, changes: dict[str, Any], said: str) -> None:
    answer = operator.post(ADD, filled(operator, ADD, name="x") | changes)
    assert said in answer.content.decode()
    assert not ApiKey.objects.exists()
    assert not entries("api.key_created")


def test_the_form_says_in_words_what_a_scope_opens(operator: Client) -> None:
    shown = page(operator, ADD)
    assert "Echo, Search" in shown
    assert "changes data: Act, Store, Weigh" in shown


def test_only_a_superuser_makes_a_key_for_a_superuser(person: Any) -> None:
    staff = make_staff("api.add_apikey", "api.view_apikey")
    client = signed_in(staff)
    refused = client.post(ADD, filled(client, ADD, name="x", owner=person.email))
    assert "Only a superuser can make a key for a superuser." in refused.content.decode()
    assert not ApiKey.objects.exists()
    client.post(ADD, filled(client, ADD, name="x", owner=staff.email))
    assert ApiKey.objects.get().created_by == staff


def test_keys_are_made_by_those_who_may(client: Client) -> None:
    assert client.get(ADD)["Location"].startswith("/admin/login/")
    for staff in (make_staff(), make_staff("api.view_apikey", "api.change_apikey")):
        assert signed_in(staff).post(ADD, {"name": "x", "owner": staff.email}).status_code == 403
    assert not ApiKey.objects.exists()


# --- Changed


def test_a_key_is_shown_without_what_authenticates(operator: Client) -> None:
    key, _ = factories.make_key()
    shown = page(operator, change_page(key))
    assert key.public_id in shown
    assert key.digest not in shown
    assert "pepper" not in shown


def test_a_change_writes_one_entry_with_old_and_new_and_works_on_the_next_call(
    operator: Client, machine: factories.Machine
) -> None:
    assert machine.key is not None
    before = machine.tools()
    address = change_page(machine.key)
    operator.post(address, filled(operator, address, scopes=[probe.READ], budget="30"))

    (entry,) = entries("api.key_changed")
    assert entry.metadata["changes"] == {
        "scopes": {"old": [probe.READ, probe.WRITE], "new": [probe.READ]},
        "budget": {"old": None, "new": 30},
    }
    assert (entry.mode, entry.actor_kind) == ("manual", "user")
    assert "probe.store" in before
    assert "probe.store" not in machine.tools()


def test_saving_an_unchanged_form_writes_nothing(operator: Client) -> None:
    key, _ = factories.make_key(
        scopes=[probe.READ], networks=["192.0.2.0/24"], expires_at=timezone.now() + timedelta(days=1)
    )
    operator.post(change_page(key), filled(operator, change_page(key)))
    assert not entries("api.key_changed")
    assert keys.grant_of(ApiKey.objects.get()) == keys.grant_of(key)


def test_what_authenticates_can_not_be_changed(operator: Client) -> None:
    key, _ = factories.make_key()
    forged = {
        "owner": factories.make_owner().email,
        "digest": "0" * 64,
        "public_id": "forged",
        "exposed_at": "",
        "revoked_at_0": "2001-01-01",
    }
    operator.post(change_page(key), filled(operator, change_page(key), name="renamed") | forged)
    after = ApiKey.objects.get()
    assert after.name == "renamed"
    assert (after.owner, after.digest, after.public_id, after.revoked_at) == (
        key.owner,
        key.digest,
        key.public_id,
        None,
    )


def test_a_form_that_is_older_than_another_change_is_refused(operator: Client) -> None:
    key, _ = factories.make_key(scopes=[probe.READ, probe.WRITE])
    stale = filled(operator, change_page(key), name="renamed")
    operator.post(change_page(key), filled(operator, change_page(key), scopes=[probe.READ]))

    answer = operator.post(change_page(key), stale, follow=True)

    after = ApiKey.objects.get()
    assert (after.name, after.scopes) == (key.name, [probe.READ])
    assert "Nothing was saved" in answer.content.decode()
    assert len(entries("api.key_changed")) == 1


def test_a_scope_whose_tools_are_gone_stays_until_it_is_taken_away(operator: Client) -> None:
    key, _ = factories.make_key(scopes=["old:read"])
    assert "no tool has this scope now" in page(operator, change_page(key))
    operator.post(change_page(key), filled(operator, change_page(key), name="renamed"))
    assert ApiKey.objects.get().scopes == ["old:read"]


def test_an_expired_key_can_be_given_more_time(operator: Client) -> None:
    with time_machine.travel(timezone.now() - timedelta(days=9), tick=True):
        key, _ = factories.make_key(expires_at=timezone.now() + timedelta(days=1))
    operator.post(change_page(key), filled(operator, change_page(key), name="renamed"))
    assert ApiKey.objects.get().name == "renamed"
    operator.post(change_page(key), filled(operator, change_page(key), expires_at_0="2999-01-01"))
    assert ApiKey.objects.get().state_at(timezone.now()) == "active"


def test_who_may_only_look_changes_nothing() -> None:
    key, _ = factories.make_key(scopes=[probe.READ], networks=["192.0.2.0/24"])
    client = signed_in(make_staff("api.view_apikey"))
    shown = page(client, change_page(key))
    assert all(text in shown for text in ["Echo, Search", "192.0.2.0/24"])
    assert f"{key.pk}/revoke/" not in shown
    assert client.post(change_page(key), {"name": "renamed"}).status_code == 403
    assert client.get(f"{LIST}{key.pk}/revoke/").status_code == 403
    assert client.post(f"{LIST}{key.pk}/revoke/", {"post": "yes"}).status_code == 403
    client.post(LIST, {"action": "revoke_keys", "_selected_action": [str(key.pk)], "post": "yes"})
    assert ApiKey.objects.get().revoked_at is None


def test_a_stranger_sees_no_page(client: Client) -> None:
    key, _ = factories.make_key()
    for address in (LIST, change_page(key), f"{LIST}{key.pk}/revoke/"):
        assert client.get(address)["Location"].startswith("/admin/login/")
        assert signed_in(make_staff()).get(address).status_code == 403
        assert signed_in(factories.make_owner()).get(address).status_code == 302


def test_nobody_deletes_a_key(operator: Client) -> None:
    key, _ = factories.make_key()
    assert operator.post(f"{LIST}{key.pk}/delete/", {"post": "yes"}).status_code == 403
    operator.post(LIST, {"action": "delete_selected", "_selected_action": [str(key.pk)], "post": "yes"})
    assert ApiKey.objects.exists()


def test_the_history_of_a_key_is_what_the_log_knows_of_it(operator: Client) -> None:
    key, _ = factories.make_key(name="wanted one")
    factories.make_key(name="other one")
    shown = operator.get(f"{LIST}{key.pk}/history/", follow=True).content.decode()
    assert "wanted one" in shown
    assert "other one" not in shown


def test_an_exposed_key_says_so_on_its_page_until_it_is_revoked(operator: Client) -> None:
    key, text = factories.make_key()
    assert "Somebody else may have this key" not in page(operator, change_page(key))
    keys.mark_exposed(text, request_id="", ip="192.0.2.7")
    assert "Somebody else may have this key" in page(operator, change_page(key))
    operator.post(f"{LIST}{key.pk}/revoke/", {"post": "yes"})
    assert "this key opens nothing any more" in page(operator, change_page(key))


# --- Revoked


def test_the_button_asks_and_then_revokes_once(operator: Client, person: Any) -> None:
    key, _ = factories.make_key(name="wanted one")
    asked = page(operator, f"{LIST}{key.pk}/revoke/")
    assert "wanted one" in asked
    assert ApiKey.objects.get().revoked_at is None

    first = operator.post(f"{LIST}{key.pk}/revoke/", {"post": "yes"}, follow=True)
    second = operator.post(f"{LIST}{key.pk}/revoke/", {"post": "yes"}, follow=True)

    assert "1 key revoked." in first.content.decode()
    assert "1 key had been revoked already." in second.content.decode()
    (entry,) = entries("api.key_revoked")
    assert (entry.actor_uuid, entry.resource_uuid, entry.mode) == (str(person.pk), str(key.pk), "manual")
    assert ApiKey.objects.get().revoked_by == person


def test_the_action_asks_and_then_revokes_each_with_an_entry(operator: Client) -> None:
    made = [factories.make_key(name=f"key {number}")[0] for number in range(3)]
    chosen = [str(key.pk) for key in made[:2]]
    asked = operator.post(LIST, {"action": "revoke_keys", "_selected_action": chosen}).content.decode()
    assert ("key 0" in asked, "key 1" in asked, "key 2" in asked) == (True, True, False)
    assert not entries("api.key_revoked")

    answer = operator.post(LIST, {"action": "revoke_keys", "_selected_action": chosen, "post": "yes"}, follow=True)

    assert "2 keys revoked." in answer.content.decode()
    assert {entry.resource_uuid for entry in entries("api.key_revoked")} == set(chosen)
    assert ApiKey.objects.get(pk=made[2].pk).revoked_at is None


def test_the_action_takes_all_keys_of_the_filter(operator: Client) -> None:
    wanted = [factories.make_key(requires_approval=True)[0] for _ in range(22)]
    other, _ = factories.make_key()
    data = {"action": "revoke_keys", "_selected_action": [str(wanted[0].pk)], "select_across": "1"}
    filtered = f"{LIST}?requires_approval__exact=1"
    asked = operator.post(filtered, data).content.decode()
    assert 'name="select_across" value="1"' in asked
    assert "and more" in asked

    operator.post(filtered, {**data, "post": "yes"})

    assert ApiKey.objects.exclude(revoked_at=None).count() == len(wanted)
    assert ApiKey.objects.get(pk=other.pk).revoked_at is None


def test_revoking_no_key_leads_back_to_the_list(operator: Client) -> None:
    answer = operator.get(f"{LIST}00000000-0000-4000-8000-000000000000/revoke/")
    assert answer["Location"] == LIST


def test_a_revoked_key_is_refused_on_the_next_call_and_can_not_be_changed(
    operator: Client, machine: factories.Machine
) -> None:
    assert machine.key is not None
    operator.post(f"{LIST}{machine.key.pk}/revoke/", {"post": "yes"})
    assert machine.call("probe.echo").status_code == 401
    assert operator.post(change_page(machine.key), {"name": "renamed"}).status_code == 403
    with pytest.raises(keys.Stale):
        keys.change(
            machine.key,
            keys.Grant(name="renamed", scopes=[]),
            seen=keys.version(machine.key),
            actor=factories.SYSTEM,
        )


def together(count: int, work: Any) -> list[Any]:
    """What `work` gives in each of so many threads that start at one moment."""
    barrier = threading.Barrier(count)
    results: list[Any] = []

    def run() -> None:
        barrier.wait()
        try:
            results.append(work())
        except keys.Stale:
            results.append(False)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_parallel_revocations_one_counts() -> None:
    key, _ = factories.make_key()
    results = together(8, lambda: keys.revoke(key, by=key.owner, actor=factories.SYSTEM))
    assert results.count(True) == 1
    assert len(entries("api.key_revoked")) == 1


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_parallel_changes_one_counts() -> None:
    key, _ = factories.make_key(scopes=[probe.READ])
    seen, grant = keys.version(key), keys.Grant(name="renamed", scopes=[])
    results = together(8, lambda: keys.change(key, grant, seen=seen, actor=factories.SYSTEM))
    assert results.count(True) == 1
    assert len(entries("api.key_changed")) == 1


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_a_form_that_is_sent_twice_at_once_makes_one_key(person: Any) -> None:
    clients = [signed_in(person) for _ in range(2)]
    data = filled(clients[0], ADD, name="x")
    waiting = iter(clients)
    statuses = together(2, lambda: next(waiting).post(ADD, data).status_code)
    assert (len(statuses), set(statuses) <= {200, 302}) == (2, True)
    assert ApiKey.objects.count() == 1
    assert len(entries("api.key_created")) == 1
