"""The plain page of the settings, and the one function that writes them."""

import html
import json
import threading
from typing import Any

import pytest
from django.db import connections
from django.test import Client

from apps.activity.models import Entry
from apps.api import settings_store, switches
from apps.api.models import Setting
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]
PAGE = "/admin/api/setting/"


@pytest.fixture
def operator(client: Client) -> Client:
    """Somebody who may change settings, and nothing else."""
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.change_setting"]))
    return client


def filled(client: Client, **changes: Any) -> dict[str, Any]:
    """What a browser would send from the page, with some fields filled in; None leaves a field out."""
    form = client.get(PAGE).context["form"]
    values = {bound.name: bound.value() for bound in form}
    data = {name: "on" if value is True else value for name, value in values.items() if value not in (None, False)}
    return {name: value for name, value in {**data, **changes}.items() if value is not None}


def stored() -> dict[str, Any]:
    return dict(Setting.objects.values_list("name", "value"))


def entries() -> list[Entry]:
    return list(Entry.objects.filter(action="api.settings_changed"))


def shown(client: Client) -> str:
    return html.unescape(client.get(PAGE).content.decode())


def test_the_page_lists_every_setting_with_its_value_default_and_meaning(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    text = shown(operator)
    assert all(f"<code>{name}</code>" in text and str(rule.help) in text for name, rule in switches.RULES.items())
    assert 'value="50"' in text
    assert "default: 600" in text
    assert all(f'value="{name}"' in text for name in ("probe", "probe.store", "probe.look"))
    assert "system.whoami" not in text


def test_changed_rows_alone_are_written_with_one_entry(operator: Client) -> None:
    data = filled(operator, api_public_enabled="on", api_key_budget="50", api_disabled_tools=["probe.store"])
    answer = operator.post(PAGE, data, headers={"X-Request-ID": "the-request"}, follow=True)

    assert stored() == {"api_public_enabled": True, "api_key_budget": 50, "api_disabled_tools": ["probe.store"]}
    (entry,) = entries()
    assert entry.metadata["changes"] == {
        "api_public_enabled": {"old": False, "new": True},
        "api_disabled_tools": {"old": [], "new": ["probe.store"]},
        "api_key_budget": {"old": 600, "new": 50},
    }
    assert (entry.mode, entry.actor_kind, entry.request_id) == ("manual", "user", "the-request")
    assert "3 settings changed" in answer.content.decode()


def test_a_value_equal_to_its_default_has_no_row(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    factories.set_setting("disabled_modules", ["probe"])
    operator.post(PAGE, filled(operator, api_key_budget="600", disabled_modules=None))
    assert stored() == {}
    assert entries()[0].metadata["changes"]["api_key_budget"] == {"old": 50, "new": 600}


def test_saving_without_a_change_writes_nothing(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    before = Setting.objects.get().updated_at
    answer = operator.post(PAGE, filled(operator), follow=True)
    assert "Nothing was changed." in answer.content.decode()
    assert (Setting.objects.get().updated_at, entries()) == (before, [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"api_key_budget": "0"}, "greater than or equal to 1"),
        ({"api_key_budget": "many"}, "Enter a whole number."),
        ({"api_key_budget": ""}, "This field is required."),
        ({"api_disabled_tools": ["probe.unknown"]}, "is not one of the available choices"),
        ({"seen": "[]"}, "open the page again"),
        ({"seen": ""}, "open the page again"),
        ({"seen": "{"}, "Enter a valid JSON."),
    ],
)
def test_an_odd_form_saves_nothing_and_says_why(operator: Client, changes: dict[str, Any], said: str) -> None:
    data = filled(operator, maintenance_mode="on") | changes
    answer = operator.post(PAGE, data)
    assert said in answer.content.decode()
    assert (stored(), entries()) == ({}, [])


def test_a_change_in_between_is_not_overwritten(operator: Client) -> None:
    stale = filled(operator, api_key_budget="50", api_network_budget="70")
    operator.post(PAGE, filled(operator, api_key_budget="40"))

    answer = operator.post(PAGE, stale, follow=True)

    assert "somebody else changed api_key_budget" in answer.content.decode()
    assert stored() == {"api_key_budget": 40}
    assert len(entries()) == 1


def test_a_change_of_another_setting_in_between_does_no_harm(operator: Client) -> None:
    older = filled(operator, api_network_budget="70")
    operator.post(PAGE, filled(operator, api_key_budget="40"))
    operator.post(PAGE, older)
    assert stored() == {"api_key_budget": 40, "api_network_budget": 70}


@pytest.mark.parametrize("odd", ["<b>", 7, {"a": 1}])
def test_an_unreadable_value_is_shown_as_such_and_left_alone(operator: Client, odd: Any) -> None:
    factories.set_setting("api_disabled_tools", odd)
    factories.set_setting("api_admin_enabled", "yes")
    assert shown(operator).count("can't be read") == 2
    assert "<code><b></code>" not in operator.get(PAGE).content.decode()

    operator.post(PAGE, filled(operator, api_key_budget="50"))

    assert stored() == {"api_disabled_tools": odd, "api_admin_enabled": "yes", "api_key_budget": 50}


def test_an_unreadable_value_is_replaced_when_that_is_asked_for(operator: Client) -> None:
    factories.set_setting("api_disabled_tools", "odd")
    operator.post(PAGE, filled(operator, api_disabled_tools=["probe.store"], replace_api_disabled_tools="on"))
    assert stored() == {"api_disabled_tools": ["probe.store"]}
    assert entries()[0].metadata["changes"] == {"api_disabled_tools": {"old": "odd", "new": ["probe.store"]}}


def test_an_unreadable_switch_can_be_replaced_by_what_it_counts_as(operator: Client) -> None:
    factories.set_setting("maintenance_mode", "odd")
    operator.post(PAGE, filled(operator, replace_maintenance_mode="on"))
    assert stored() == {"maintenance_mode": True}


def test_names_that_are_no_longer_installed_stay_until_they_are_taken_away(operator: Client) -> None:
    factories.set_setting("api_disabled_tools", ["gone.tool"])
    assert "not installed" in shown(operator)
    operator.post(PAGE, filled(operator, api_key_budget="50"))
    assert stored()["api_disabled_tools"] == ["gone.tool"]


def test_a_change_counts_from_the_next_call_on(operator: Client, machine: factories.Machine) -> None:
    assert machine.call("probe.echo").status_code == 200
    operator.post(PAGE, filled(operator, api_disabled_tools=["probe.echo"]))
    assert machine.call("probe.echo").status_code == 404
    operator.post(PAGE, filled(operator, disabled_modules=["probe"], api_disabled_tools=None))
    assert machine.call("probe.echo").json()["code"] == "module_disabled"
    operator.post(PAGE, filled(operator, disabled_modules=None, maintenance_mode="on"))
    assert machine.call("probe.echo").status_code == 503


def test_only_those_who_may_change_settings_see_the_page(client: Client) -> None:
    assert client.get(PAGE)["Location"].startswith("/admin/login/")
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.view_setting", "api.add_setting"]))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"seen": "{}", "maintenance_mode": "on"}).status_code == 403
    assert stored() == {}
    client.force_login(factories.make_owner(permissions=["api.change_setting"]))
    assert client.get(PAGE).status_code == 302


def test_there_is_no_other_page_of_the_settings(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    for address in ("add/", "api_key_budget/change/", "api_key_budget/delete/"):
        assert operator.get(f"{PAGE}{address}").status_code == 404
    assert PAGE in operator.get("/admin/").content.decode()


@pytest.mark.parametrize(
    ("values", "error"),
    [({"api_key_budget": True}, switches.Unreadable), ({"api_key_budgets": 7}, KeyError)],
)
def test_the_store_takes_no_value_that_the_gate_could_not_read(values: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        settings_store.save({"maintenance_mode": True, **values}, seen={}, actor=factories.SYSTEM)
    assert stored() == {}


@pytest.mark.parametrize("before", [None, 50])
@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_parallel_changes_one_counts(before: int | None) -> None:
    if before is not None:
        factories.set_setting("api_key_budget", before)
    seen, barrier = settings_store.rows(), threading.Barrier(8)
    outcomes: list[Any] = []

    def save(value: int) -> None:
        barrier.wait()
        try:
            outcomes.append(settings_store.save({"api_key_budget": value}, seen=seen, actor=factories.SYSTEM))
        except settings_store.Changed as changed:
            outcomes.append(str(changed))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=save, args=[value]) for value in range(100, 108)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(map(json.dumps, outcomes)) == ['"api_key_budget"'] * 7 + ['["api_key_budget"]']
    assert entries()[0].metadata["changes"]["api_key_budget"]["new"] == stored()["api_key_budget"]
    assert len(entries()) == 1
