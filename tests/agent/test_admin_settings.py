"""Settings → Agent: reviewed, saved by the rules that they are read by, one entry a change, and rows for single people."""

import json
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from apps.activity.models import Entry
from apps.agent import options
from apps.agent.admin import settings_words
from apps.agent.models import AgentSetting
from apps.api.models import Setting
from tests.agent.test_endpoint_keys import make_endpoint
from tests.api import factories
from tests.api.settings_page import Sheet, lines_of, open_sheet, text_of

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

PAGE = "/admin/agent/agentsetting/"
RIGHT = "agent.change_agentsetting"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(factories.make_owner(is_staff=True, permissions=[RIGHT]))
    return client


def sheet(client: Client) -> Sheet:
    return open_sheet(client, PAGE)


def stored() -> dict[str, Any]:
    return dict(Setting.objects.values_list("name", "value"))


def test_every_option_has_words_and_stands_on_the_page(operator: Client) -> None:
    assert settings_words.VOCABULARY.words.keys() == options.RULES.keys()
    text = text_of(operator.get(PAGE))
    assert all(
        str(words.label) in text and str(words.help) in text for words in settings_words.VOCABULARY.words.values()
    )
    assert 'value="0.5"' in text
    assert "Default: 0.5 US dollars" in text


def test_what_is_saved_without_a_change_writes_nothing(operator: Client) -> None:
    answer = sheet(operator).send(follow=True)
    assert "Nothing is changed" in text_of(answer)
    assert (stored(), Entry.objects.filter(module="agent").count()) == ({}, 0)


def test_a_change_is_asked_about_and_saved_with_one_entry(operator: Client) -> None:
    filled = sheet(operator).untick("agent_enabled").fill("agent_turn_cost", "1.25").fill("agent_rounds", "4")
    filled.fill("agent_prompt_addition", "Be kind.\r\nAnswer in German.")
    review = filled.send()
    assert "Cost of one turn: 0.5 US dollars → 1.25 US dollars" in lines_of(review)
    assert stored() == {}
    filled.save()
    assert stored() == {
        "agent_enabled": False,
        "agent_turn_cost": "1.2500",
        "agent_rounds": 4,
        "agent_prompt_addition": "Be kind.\nAnswer in German.",
    }
    found = options.current()
    assert (found.agent_enabled, found.agent_turn_cost) == (False, Decimal("1.25"))
    entry = Entry.objects.get(action="agent.settings_changed")
    assert entry.metadata["changes"]["agent_rounds"] == {"old": 8, "new": 4}


def test_a_value_that_goes_back_to_its_default_leaves_no_row(operator: Client) -> None:
    factories.set_setting("agent_daily_cost", "1.0000")
    sheet(operator).fill("agent_daily_cost", "5").save()
    assert stored() == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent_rounds", "0"), ("agent_rounds", "101"), ("agent_rounds", "x"), ("agent_turn_cost", "-1"),
        ("agent_turn_cost", "0.00001"), ("agent_turn_cost", "NaN"), ("agent_daily_cost", "100001"), ("agent_prompt_addition", "x" * 8_001),
    ],
)  # fmt: skip
def test_what_could_not_be_read_is_not_stored(operator: Client, field: str, value: str) -> None:
    answer = sheet(operator).fill(field, value).send()
    assert answer.status_code == 400
    assert field in answer.context["form"].errors
    assert stored() == {}


def test_what_cannot_be_read_is_said_and_replaced_only_on_request(operator: Client) -> None:
    factories.set_setting("agent_prompt_addition", ["never"])
    factories.set_setting("agent_turn_cost", 0.5)
    text = text_of(operator.get(PAGE))
    assert "Meanwhile the assistant is off" in text
    assert "Meanwhile it counts as: 0 US dollars." in text
    assert "The assistant is off." in text
    sheet(operator).fill("agent_rounds", "5").save()
    assert stored()["agent_prompt_addition"] == ["never"]
    sheet(operator).tick("replace_agent_prompt_addition").fill("agent_prompt_addition", "Be kind.").save()
    assert (stored()["agent_prompt_addition"], stored()["agent_turn_cost"]) == ("Be kind.", 0.5)


def test_two_operators_who_change_the_same_limit_are_told(operator: Client) -> None:
    mine = sheet(operator).fill("agent_rounds", "5")
    factories.set_setting("agent_rounds", 6)
    answer = mine.send()
    assert answer.status_code == 409
    assert "Requests to the model in one turn" in text_of(answer)
    assert stored() == {"agent_rounds": 6}


def test_the_page_says_who_answers(operator: Client) -> None:
    assert "the demo model answers" in text_of(operator.get(PAGE))
    make_endpoint()
    assert "The endpoint main answers, with the model wire-1." in text_of(operator.get(PAGE))


@pytest.mark.parametrize(
    "permissions", [(), ("api.change_setting",), ("agent.view_agentsetting", "agent.add_agentsetting")]
)
def test_it_needs_the_permission_and_no_other_will_do(client: Client, permissions: tuple[str, ...]) -> None:
    client.force_login(factories.make_owner(is_staff=True, permissions=permissions))
    row = AgentSetting.objects.create(user=factories.make_owner())
    pages = [PAGE, f"{PAGE}people/", f"{PAGE}add/", f"{PAGE}{row.pk}/change/", f"{PAGE}{row.pk}/delete/"]
    assert {client.get(page).status_code for page in pages} == {403}
    assert {client.post(page, {"save": "1", "seen": "{}", "post": "yes"}).status_code for page in pages} == {403}
    assert AgentSetting.objects.count() == 1


def test_a_form_that_says_nothing_of_what_was_seen_is_refused(operator: Client) -> None:
    assert operator.post(PAGE, {"save": "1"}).status_code == 400


# People


def sent(**fields: str) -> dict[str, str]:
    return {"is_enabled": "on", "daily_tokens": "", "daily_cost": "", "turns_at_once": "", **fields}


def test_a_person_is_switched_off_limited_and_set_free_again_each_with_its_entry(operator: Client) -> None:
    person = factories.make_owner(email="limited@example.org")
    operator.post(f"{PAGE}add/", sent(address="limited@example.org", daily_cost="0.5"))
    page = f"{PAGE}{person.pk}/"
    operator.post(f"{page}change/", {**sent(daily_cost="0.5", daily_tokens="1000"), "is_enabled": ""})
    row = AgentSetting.objects.get()
    assert (row.user, row.is_enabled, row.daily_cost, row.daily_tokens) == (person, False, Decimal("0.5"), 1_000)
    assert "limited@example.org" in text_of(operator.get(f"{PAGE}people/"))
    operator.post(f"{page}delete/", {"post": "yes"})
    entries = Entry.objects.filter(action="agent.person_changed").order_by("created_at")
    assert [sorted(entry.metadata.get("changes", entry.metadata)) for entry in entries] == [
        ["daily_cost"],
        ["daily_tokens", "is_enabled"],
        ["removed"],
    ]
    assert {entry.resource_uuid for entry in entries} == {str(person.pk)}
    assert not AgentSetting.objects.exists()


@pytest.mark.parametrize("address", ["nobody@example.org", "taken@example.org", ""])
def test_a_row_needs_a_person_who_has_none(operator: Client, address: str) -> None:
    AgentSetting.objects.create(user=factories.make_owner(email="taken@example.org"))
    answer = operator.post(f"{PAGE}add/", sent(address=address))
    assert answer.context["adminform"].form.errors.keys() == {"address"}
    assert AgentSetting.objects.count() == 1


@pytest.mark.parametrize(("field", "value"), [("daily_cost", "-1"), ("daily_tokens", "-1"), ("turns_at_once", "x")])
def test_a_limit_of_a_person_is_a_number_from_zero(operator: Client, field: str, value: str) -> None:
    factories.make_owner(email="limited@example.org")
    answer = operator.post(f"{PAGE}add/", sent(address="limited@example.org", **{field: value}))
    assert answer.context["adminform"].form.errors.keys() == {field}


def test_the_rows_of_the_gate_are_not_this_pages(operator: Client) -> None:
    factories.set_setting("api_key_budget", 50)
    assert "api_key_budget" not in json.loads(
        sheet(operator).fields[0][1] if sheet(operator).fields[0][0] == "seen" else "{}"
    )
    sheet(operator).fill("agent_rounds", "5").save()
    assert stored() == {"api_key_budget": 50, "agent_rounds": 5}
