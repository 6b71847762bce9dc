"""Settings → API: what the page shows, the changes that it asks about, and what is stored after that (ST-1, ST-2)."""

from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import LiveSession
from apps.agent import options
from apps.api import Module, registry, switches
from apps.api.admin import settings_words
from apps.api.models import Setting
from tests.api import factories, probe
from tests.api.settings_page import PAGE, Sheet, entries, fields_of, lines_of, open_sheet, sign_in, stored, text_of

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]


@pytest.fixture
def operator(client: Client) -> Client:
    return sign_in(client)


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


def test_of_many_changes_the_message_names_the_first(operator: Client) -> None:
    sheet = open_sheet(operator)
    for name in (*settings_words.BUDGETS, *settings_words.TIMES):
        sheet.fill(name, "7")
    for tool in ("act", "echo", "look", "search", "store", "weigh"):
        sheet.tick("hidden", f"probe.{tool}")
    text = text_of(sheet.save())
    assert "probe.weigh: hidden: no → yes; Budget of a key: 600 units a minute → 7 units a minute; " in text
    assert "; and 5 more." in text
    assert len(entries()[0].metadata["changes"]) == 12


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


def test_the_reference_lists_every_setting_as_the_page_names_it() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md").read_text()
    rows = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `") and line[3].islower()}
    assert set(rows) == set(switches.RULES) | set(options.RULES)
    assert all(str(words.label) in rows[name] for name, words in settings_words.WORDS.items())
    assert all(
        settings_words.value(name, rule.default) in rows[name] for name, rule in switches.RULES.items() if rule.bounds
    )
