"""What else may have become of the settings: another operator's edit, names that are not installed, values that can't be read (ST-1)."""

from typing import Any

import pytest
from django.test import Client

from tests.api import factories
from tests.api.settings_page import PAGE, Sheet, entries, fields_of, lines_of, open_sheet, sign_in, stored, text_of

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]


@pytest.fixture
def operator(client: Client) -> Client:
    return sign_in(client)


@pytest.fixture
def second() -> Client:
    """Another operator, at another desk."""
    return sign_in(Client())


# --- Two operators ----------------------------------------------------------------------------------------------------------------------


def test_boxes_of_the_same_list_that_two_operators_tick_are_both_kept(operator: Client, second: Client) -> None:
    mine = open_sheet(operator).tick("hidden", "probe.store")
    open_sheet(second).tick("hidden", "probe.echo").save()
    review = mine.send()
    open_sheet(second).tick("hidden", "probe.act").fill("api_network_budget", "70").save()
    Sheet(operator, fields_of(review)).send("save")
    assert stored() == {"api_disabled_tools": ["probe.act", "probe.echo", "probe.store"], "api_network_budget": 70}


@pytest.mark.parametrize("is_reviewed", [False, True])
def test_the_same_box_is_not_overwritten_and_the_other_changes_stay_filled_in(
    operator: Client, second: Client, is_reviewed: bool
) -> None:
    sheet = open_sheet(operator).fill("api_key_budget", "50").tick("hidden", "probe.store").tick("hidden", "probe.act")
    review = sheet.send()
    open_sheet(second).fill("api_key_budget", "40").tick("hidden", "probe.act").save()

    mine = Sheet(operator, fields_of(review)) if is_reviewed else sheet
    answer = mine.send("save" if is_reviewed else "review")

    assert answer.status_code == 409
    said = "Nothing was saved. Somebody else changed this in the meantime: probe.act: hidden, Budget of a key."
    assert said in text_of(answer)
    assert stored() == {"api_disabled_tools": ["probe.act"], "api_key_budget": 40}
    shown = Sheet(operator, fields_of(answer))
    assert shown.has("api_key_budget", "40")
    assert lines_of(shown.send()) == ["probe.store: hidden: no → yes"]


def test_a_change_of_another_setting_in_between_does_no_harm(operator: Client, second: Client) -> None:
    older = open_sheet(operator).fill("api_network_budget", "70")
    open_sheet(second).fill("api_key_budget", "40").save()
    older.save()
    assert stored() == {"api_key_budget": 40, "api_network_budget": 70}


# --- Names that are not installed, values that can't be read -----------------------------------------------------------------------------


def test_names_that_are_not_installed_stay_until_they_are_taken_out(operator: Client) -> None:
    for name in ("disabled_modules", "api_disabled_modules", "api_session_write_modules", "api_disabled_tools"):
        factories.set_setting(name, ["gone"])
    assert text_of(operator.get(PAGE)).count("not installed") == 2
    open_sheet(operator).fill("api_key_budget", "50").tick("hidden", "probe.act").save()
    assert stored()["api_disabled_tools"] == ["gone", "probe.act"]
    assert stored()["disabled_modules"] == stored()["api_session_write_modules"] == ["gone"]

    sheet = open_sheet(operator).untick("hidden", "gone").untick("agent_may_act", "gone")
    sheet.tick("module_on", "gone").tick("api_on", "gone").save()
    assert stored() == {"api_disabled_tools": ["probe.act"], "api_key_budget": 50}


@pytest.mark.parametrize("odd", ["<b>", 7, {"a": 1}])
def test_an_unreadable_value_is_shown_with_what_it_means_and_left_alone(operator: Client, odd: Any) -> None:
    factories.set_setting("api_disabled_tools", odd)
    factories.set_setting("api_admin_enabled", "yes")
    text = text_of(operator.get(PAGE))
    assert text.count("The stored value can't be read") == 2
    assert "Meanwhile every tool is closed to everybody." in text
    assert "Meanwhile it counts as: off." in text
    assert "<code><b></code>" not in operator.get(PAGE).content.decode()

    open_sheet(operator).fill("api_key_budget", "50").tick("hidden", "probe.act").tick("api_admin_enabled").save()

    assert stored() == {"api_disabled_tools": odd, "api_admin_enabled": "yes", "api_key_budget": 50}


def test_an_unreadable_list_is_replaced_when_that_is_asked_for(operator: Client) -> None:
    factories.set_setting("api_disabled_tools", "odd")
    sheet = open_sheet(operator).tick("hidden", "probe.store").tick("replace_api_disabled_tools")
    assert lines_of(sheet.send()) == ['Tools that are hidden: can\'t be read ("odd") → probe.store']
    sheet.save()
    assert stored() == {"api_disabled_tools": ["probe.store"]}
    assert entries()[0].metadata["changes"] == {"api_disabled_tools": {"old": "odd", "new": ["probe.store"]}}


def test_of_an_unreadable_list_of_closed_modules_none_is_on_until_it_is_ticked(operator: Client) -> None:
    factories.set_setting("disabled_modules", 7)
    assert not open_sheet(operator).has("module_on", "probe")
    assert lines_of(open_sheet(operator).tick("replace_disabled_modules").send()) == [
        "Modules that are off: can't be read (7) → probe"
    ]
    open_sheet(operator).tick("module_on", "probe").tick("replace_disabled_modules").save()
    assert stored() == {}


def test_an_unreadable_switch_can_be_replaced_by_what_it_counts_as(operator: Client) -> None:
    factories.set_setting("maintenance_mode", "odd")
    open_sheet(operator).tick("replace_maintenance_mode").save()
    assert stored() == {"maintenance_mode": True}


def test_a_value_that_somebody_mends_meanwhile_is_not_replaced(operator: Client, second: Client) -> None:
    factories.set_setting("api_disabled_tools", "odd")
    mine = open_sheet(operator).tick("replace_api_disabled_tools")
    open_sheet(second).tick("hidden", "probe.act").tick("replace_api_disabled_tools").save()
    assert mine.send().status_code == 409
    assert stored() == {"api_disabled_tools": ["probe.act"]}
