"""Settings → API: what the page shows, the changes that it asks about, and what is stored after that (ST-1, ST-2)."""

import html
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import LiveSession
from apps.activity.models import Entry
from apps.api import Module, registry, switches
from apps.api.admin import settings_words
from apps.api.models import Setting
from tests.api import factories, probe
from tests.api.settings_page import PAGE, Sheet, fields_of, open_sheet

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]


@pytest.fixture
def operator(client: Client) -> Client:
    """Somebody who may change settings, and nothing else."""
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.change_setting"]))
    return client


@pytest.fixture
def second() -> Client:
    """Another operator, at another desk."""
    client = Client()
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.change_setting"]))
    return client


def stored() -> dict[str, Any]:
    return dict(Setting.objects.values_list("name", "value"))


def entries() -> list[Entry]:
    return list(Entry.objects.filter(action="api.settings_changed"))


def text_of(answer: Any) -> str:
    return html.unescape(answer.content.decode())


def lines_of(answer: Any) -> list[str]:
    """The changes that the page asks about."""
    return [str(line) for line in answer.context["lines"]]


# --- What is shown ---------------------------------------------------------------------------------------------------------------------


def test_every_setting_has_words_and_stands_on_the_page(operator: Client) -> None:
    assert {*settings_words.WORDS, *settings_words.LISTS} == set(switches.RULES)
    text = text_of(operator.get(PAGE))
    assert all(str(words.label) in text and str(words.help) in text for words in settings_words.WORDS.values())
    assert all(str(boxes.label) in text and str(boxes.help) in text for boxes in settings_words.LISTS.values())


def test_a_number_has_its_unit_bounds_and_default_and_says_that_it_was_changed(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    text = text_of(operator.get(PAGE))
    assert 'value="50"' in text
    assert "From 1 to 1,000,000." in text
    assert "Default: 600 units a minute <strong" in text
    assert text.count("changed from the default") == 1


def test_a_module_has_three_boxes_and_each_of_its_tools_one(operator: Client) -> None:
    sheet = open_sheet(operator)
    assert sheet.has("module_on", "probe")
    assert sheet.has("api_on", "probe")
    assert not sheet.has("agent_may_act", "probe")
    assert not [pair for pair in sheet.fields if pair[0] == "hidden"]
    (card,) = operator.get(PAGE).context["cards"]
    rows = {row.name: (row.kind, row.audience) for row in card.tools}
    assert rows["probe.store"] == ("write", "keys and assistants")
    assert rows["probe.look"] == ("read", "visitors")
    assert "system.whoami" not in text_of(operator.get(PAGE))


def test_the_agent_has_no_box_to_tick_in_a_module_without_writes(operator: Client) -> None:
    module = Module(key="lookup", name="Look-up")
    module.tool("lookup.find", scope="l:read", permission=probe.VIEW, annotations=probe.READS)(lambda ctx: {})
    with registry.using(module):
        assert "It has no tool that changes something for keys and assistants." in text_of(operator.get(PAGE))
        assert "has no box on this page" in text_of(open_sheet(operator).tick("agent_may_act", "lookup").send())
        factories.set_setting("api_session_write_modules", ["lookup"])
        assert open_sheet(operator).untick("agent_may_act", "lookup").save().status_code == 200
    assert stored() == {}


def test_the_page_reads_the_settings_with_one_query_whatever_is_sent(operator: Client) -> None:
    sheet = open_sheet(operator).fill("api_key_budget", "50")
    for request in (
        lambda: operator.get(PAGE),
        lambda: operator.get(PAGE, {"person": factories.make_owner().pk}),
        sheet.send,
        lambda: sheet.send("back"),
        lambda: sheet.send("save"),
    ):
        with CaptureQueriesContext(connection) as queries:
            request()
        reads = [row["sql"] for row in queries if row["sql"].startswith('SELECT "api_setting"')]
        assert len(reads) == 1, reads


# --- Reviewed, then saved ---------------------------------------------------------------------------------------------------------------


def test_changes_are_shown_in_words_before_anything_is_saved(operator: Client) -> None:
    factories.set_setting("api_disabled_tools", ["probe.echo"])
    sheet = open_sheet(operator).tick("agent_may_act", "probe").untick("module_on", "probe").tick("maintenance_mode")
    review = sheet.tick("hidden", "probe.store").untick("hidden", "probe.echo").fill("api_key_budget", "5000").send()

    assert lines_of(review) == [
        "Maintenance: off → on",
        "probe: Module on: on → off",
        "probe.echo: hidden: yes → no",
        "probe.store: hidden: no → yes",
        "probe: Agent may act: off → on",
        "Budget of a key: 600 units a minute → 5,000 units a minute",
    ]
    assert "Maintenance stops every call over the API" in text_of(review)
    assert (stored(), entries()) == ({"api_disabled_tools": ["probe.echo"]}, [])


def test_what_was_reviewed_is_saved_with_one_entry_of_old_and_new_values(operator: Client) -> None:
    sheet = open_sheet(operator).tick("api_public_enabled").fill("api_key_budget", "50").tick("hidden", "probe.store")
    answer = sheet.untick("api_on", "probe").save(**{"X-Request-ID": "the-request"})

    assert stored() == {
        "api_public_enabled": True,
        "api_disabled_modules": ["probe"],
        "api_disabled_tools": ["probe.store"],
        "api_key_budget": 50,
    }
    (entry,) = entries()
    assert entry.metadata["changes"] == {
        "api_public_enabled": {"old": False, "new": True},
        "api_disabled_modules": {"old": [], "new": ["probe"]},
        "api_disabled_tools": {"old": [], "new": ["probe.store"]},
        "api_key_budget": {"old": 600, "new": 50},
    }
    assert (entry.mode, entry.actor_kind, entry.request_id) == ("manual", "user", "the-request")
    said = "Saved: Visitors may call public tools: off → on; probe: API on: on → off; probe.store: hidden: no → yes; "
    assert f"{said}Budget of a key: 600 units a minute → 50 units a minute." in text_of(answer)
    assert "See the entry" not in text_of(answer), "they may not see entries"


def test_who_may_see_entries_gets_a_link_to_this_one(client: Client) -> None:
    client.force_login(factories.make_owner(superuser=True))
    answer = open_sheet(client).fill("api_key_budget", "50").save()
    assert f'href="/admin/activity/entry/{entries()[0].pk}/change/"' in text_of(answer)


def test_back_keeps_what_was_filled_in(operator: Client) -> None:
    sheet = open_sheet(operator).untick("module_on", "probe").tick("hidden", "probe.act").fill("api_key_budget", "50")
    back = Sheet(operator, fields_of(sheet.send())).send("back")
    again = Sheet(operator, fields_of(back))
    assert lines_of(again.send()) == lines_of(sheet.send())
    assert stored() == {}


def test_a_value_equal_to_its_default_has_no_row(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    factories.set_setting("disabled_modules", ["probe"])
    open_sheet(operator).fill("api_key_budget", "600").tick("module_on", "probe").save()
    assert stored() == {}
    assert entries()[0].metadata["changes"]["api_key_budget"] == {"old": 50, "new": 600}


def test_without_a_change_there_is_nothing_to_save(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    before = Setting.objects.get().updated_at
    assert "Nothing is changed" in text_of(open_sheet(operator).send(follow=True))
    assert "Nothing is changed" in text_of(open_sheet(operator).send("save", follow=True))
    assert (Setting.objects.get().updated_at, entries()) == (before, [])


@pytest.mark.parametrize("button", ["review", "save", "back"])
@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("api_key_budget", "0", "greater than or equal to 1"),
        ("api_key_budget", "many", "Enter a whole number."),
        ("api_key_budget", "", "This field is required."),
        ("hidden", "probe.unknown", "probe.unknown has no box on this page."),
        ("agent_may_act", "<b>", "<b> has no box on this page."),
        ("seen", "[]", "the form was damaged"),
        ("seen", "", "the form was damaged"),
        ("seen", "{", "the form was damaged"),
        ("seen", '{"disabled_modules": ["\\ud800"]}', "the form was damaged"),
        ("seen", "[" * 100_000, "the form was damaged"),
    ],
)
def test_an_odd_form_saves_nothing_and_says_why(
    operator: Client, field: str, value: str, said: str, button: str
) -> None:
    answer = open_sheet(operator).tick("maintenance_mode").fill(field, value).send(button)
    assert (answer.status_code, said in text_of(answer)) == (400, True)
    assert "<b> has" not in answer.content.decode()
    assert (stored(), entries()) == ({}, [])


def test_a_form_that_claims_to_have_seen_more_than_there_is_changes_nothing(operator: Client) -> None:
    seen = '{"disabled_modules": ["made.up"], "no_such": 1, "api_disabled_tools": 7}'
    open_sheet(operator).fill("seen", seen).send("save")
    assert (stored(), entries()) == ({}, [])


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


# --- Who may, and since when it counts ---------------------------------------------------------------------------------------------------


def test_a_change_counts_from_the_next_call_on(operator: Client, machine: factories.Machine) -> None:
    assert machine.call("probe.echo").status_code == 200
    open_sheet(operator).tick("hidden", "probe.echo").save()
    assert machine.call("probe.echo").status_code == 404
    open_sheet(operator).untick("hidden", "probe.echo").untick("module_on", "probe").save()
    assert machine.call("probe.echo").json()["code"] == "module_disabled"
    open_sheet(operator).untick("api_on", "probe").save()
    assert machine.call("probe.echo").status_code == 404
    open_sheet(operator).tick("module_on", "probe").tick("api_on", "probe").tick("maintenance_mode").save()
    assert machine.call("probe.echo").status_code == 503


def test_only_those_who_may_change_settings_see_the_page(client: Client) -> None:
    assert client.get(PAGE)["Location"].startswith("/admin/login/")
    client.force_login(factories.make_owner(is_staff=True, permissions=["api.view_setting", "api.add_setting"]))
    assert client.get(PAGE).status_code == 403
    assert client.post(PAGE, {"seen": "{}", "maintenance_mode": "on", "save": "1"}).status_code == 403
    assert stored() == {}
    client.force_login(factories.make_owner(permissions=["api.change_setting"]))
    assert client.get(PAGE).status_code == 302


def test_who_looks_at_the_site_as_somebody_else_sees_the_page_and_changes_nothing(operator: Client) -> None:
    sheet = open_sheet(operator).tick("maintenance_mode")
    LiveSession.objects.update(impersonator=factories.make_owner(superuser=True, is_staff=True))
    assert "You look at the site as somebody else" in text_of(operator.get(PAGE))
    assert "Review changes" not in text_of(operator.get(PAGE))
    assert {sheet.send(button).status_code for button in ("review", "save", "back")} == {403}
    assert (stored(), entries()) == ({}, [])


def test_there_is_no_other_page_of_the_settings(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    for address in ("add/", "api_key_budget/change/", "api_key_budget/delete/"):
        assert operator.get(f"{PAGE}{address}").status_code == 404
    assert f'<a href="{PAGE}"' in operator.get("/admin/").content.decode()
    assert "Settings → API" in text_of(operator.get("/admin/"))
