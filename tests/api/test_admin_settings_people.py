"""The table of Settings → API, for the settings alone and for a person, and the warning before operators stop themselves (ST-1)."""

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import User
from apps.api import Module, registry
from apps.api.models import Setting
from tests.accounts.factories import make_group, make_user
from tests.api import factories, probe
from tests.api.settings_page import PAGE, Sheet, fields_of, open_sheet, text_of

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db, pytest.mark.usefixtures("tools")]

KEYED = ["probe.act", "probe.echo", "probe.search", "probe.store", "probe.weigh"]


@pytest.fixture
def operator(client: Client) -> Client:
    """Somebody who may change settings, and whom no gate stops."""
    standing: dict[str, Any] = {"is_staff": True, "email_confirmed_at": timezone.now(), "referral_code": "a-code"}
    client.force_login(factories.make_owner(permissions=["api.change_setting"], **standing))
    return client


def table(client: Client, **asked: Any) -> dict[str, list[str]]:
    """The reasons by tool, as the page gives them in words."""
    answer = client.get(PAGE, asked)
    rows = {row.tool: row.reasons for row in answer.context["table"]}
    text = text_of(answer)
    assert all(reason in text for reasons in rows.values() for reason in reasons)
    return rows


# --- The settings alone ------------------------------------------------------------------------------------------------------------------


def test_every_tool_for_keys_and_assistants_has_a_row_and_no_other(operator: Client) -> None:
    rows = operator.get(PAGE).context["table"]
    assert [row.tool for row in rows] == KEYED
    shown = {row.tool: (row.module, row.kind, row.permission, row.scope, row.danger) for row in rows}
    assert shown["probe.echo"] == ("Probe", "read", probe.VIEW, probe.READ, "none")
    assert shown["probe.act"] == ("Probe", "write", probe.CHANGE, probe.WRITE, "always")
    assert shown["probe.weigh"] == ("Probe", "write", probe.CHANGE, probe.WRITE, "conditional")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("disabled_modules", ["probe"], "The module is off: tick “Module on”."),
        ("disabled_modules", "odd", "The list of modules that are off can't be read: replace it above."),
        ("api_disabled_modules", ["probe"], "The module's API is off: tick “API on”."),
        ("api_disabled_modules", 7, "A list of what is closed can't be read, so everything is: replace it above."),
        ("api_disabled_tools", 7, "A list of what is closed can't be read, so everything is: replace it above."),
        ("api_disabled_tools", ["probe.echo"], "The tool is hidden: untick “hidden”."),
    ],
)
def test_a_closed_tool_says_why_and_what_to_do(operator: Client, name: str, value: Any, said: str) -> None:
    assert table(operator)["probe.echo"] == []
    factories.set_setting(name, value)
    assert table(operator)["probe.echo"] == [said]


def test_a_write_is_closed_until_the_agent_may_act(operator: Client) -> None:
    assert table(operator)["probe.store"] == ["The agent may only read here: tick “Agent may act”."]
    open_sheet(operator).tick("agent_may_act", "probe").save()
    assert table(operator)["probe.store"] == []


def test_without_a_module_the_page_says_so(operator: Client) -> None:
    with registry.using():
        text = text_of(operator.get(PAGE))
    assert "No module is installed." in text
    assert "No module declares a tool for keys and assistants." in text


# --- A person ----------------------------------------------------------------------------------------------------------------------------


def test_for_a_person_the_table_says_what_they_lack(operator: Client) -> None:
    factories.set_setting("api_session_write_modules", ["probe"])
    reader = make_user(groups=[make_group(permissions=[probe.VIEW])])
    rows = table(operator, person=reader.pk)
    assert [name for name, reasons in rows.items() if not reasons] == ["probe.echo", "probe.search"]
    assert rows["probe.store"] == [
        "No role of this person has the permission api.change_setting: add it to one of them."
    ]


def test_a_scope_that_is_held_in_part_says_which_permissions_are_missing(operator: Client) -> None:
    module = Module(key="two", name="Two")
    for name, permission in (("two.mine", probe.VIEW), ("two.other", "api.view_apikey"), ("two.none", None)):
        scope = "two:bare" if permission is None else "two:read"
        module.tool(name, scope=scope, permission=permission, annotations=probe.READS)(lambda ctx: {})
    module.tool("two.beside", scope="two:bare", permission=probe.VIEW, annotations=probe.READS)(lambda ctx: {})
    reader = make_user(permissions=[probe.VIEW])
    with registry.using(module):
        rows = table(operator, person=reader.pk)
    assert rows == {
        "two.mine": [
            "The scope two:read takes the permissions of all its open tools; this person lacks: api.view_apikey."
        ],
        "two.other": ["No role of this person has the permission api.view_apikey: add it to one of them."],
        "two.none": ["Its declaration names no permission or no scope: nobody can call it."],
        "two.beside": ["Another tool on the scope two:bare names no permission: nobody holds the scope."],
    }


def test_an_operator_finds_a_person_by_a_part_of_their_address_or_name(operator: Client) -> None:
    first = make_user(email="anna@example.org", name="Anna Berg")
    make_user(email="bert@example.org", name="Bert Berg")
    found = text_of(operator.get(PAGE, {"q": " berg "}))
    assert f'<a href="?person={first.pk}#availability">Anna Berg (anna@example.org)</a>' in found
    assert "Bert Berg (bert@example.org)" in found
    assert "For <strong>Anna Berg (anna@example.org)</strong>" in text_of(operator.get(PAGE, {"q": "anna"}))
    assert "Nobody's address or name has “<i>”" in text_of(operator.get(PAGE, {"q": "<i>"}))
    assert "<i>" not in operator.get(PAGE, {"q": "<i>"}).content.decode()
    assert "Type a part of an address or a name." in text_of(operator.get(PAGE, {"q": "\0"}))


def test_a_search_that_finds_too_many_asks_for_more(operator: Client) -> None:
    for number in range(21):
        make_user(email=f"many{number}@example.org")
    answer = text_of(operator.get(PAGE, {"q": "many"}))
    assert answer.count("?person=") == 20
    assert "There are more: type more of the address." in answer


@pytest.mark.parametrize("person", ["00000000-0000-4000-8000-000000000000", "7", "nobody", "<b>", "\0", "9" * 400])
def test_an_unknown_person_is_said_to_be_unknown(operator: Client, person: str) -> None:
    answer = operator.get(PAGE, {"person": person})
    assert (answer.status_code, "There is no such person." in text_of(answer)) == (200, True)
    assert [row.reasons for row in answer.context["table"] if row.kind == "read"] == [[], []]


@pytest.mark.parametrize(
    ("fields", "gates", "said"),
    [
        ({"is_active": False}, ["accounts_email_required"], "the account is blocked"),
        ({}, ["accounts_email_required"], "their e-mail address is not confirmed"),
        ({"email_confirmed_at": timezone.now()}, ["accounts_referral_required"], "they have given no referral code"),
        (
            {},
            ["accounts_email_required", "accounts_referral_required"],
            "their e-mail address is not confirmed; they have given no referral code",
        ),
        (
            {"referral_code": "a-code"},
            ["accounts_email_required", "accounts_referral_required"],
            "their e-mail address is not confirmed",
        ),
    ],
)
def test_who_may_not_act_now_is_shown_with_the_gate_and_without_an_open_tool(
    operator: Client, fields: dict[str, Any], gates: list[str], said: str
) -> None:
    person = make_user(permissions=[probe.VIEW], **fields)
    for name in gates:
        factories.set_setting(name, True)
    assert f"May not act now: {said}." in text_of(operator.get(PAGE, {"person": str(person.pk)}))
    assert table(operator, person=person.pk)["probe.echo"] == [f"This person may not act now: {said}."]


def test_after_saving_the_table_is_still_that_of_the_person(operator: Client) -> None:
    address = f"{PAGE}?person={make_user(permissions=[probe.VIEW, probe.CHANGE]).pk}"
    answer = open_sheet(operator, address).tick("agent_may_act", "probe").save()
    assert answer.context["picked"] is not None
    assert [row.reasons for row in answer.context["table"]] == [[]] * 5


# --- Gates that would stop the operators ------------------------------------------------------------------------------------------------


def gates() -> dict[str, Any]:
    return dict(Setting.objects.filter(name__startswith="accounts_").values_list("name", "value"))


def test_an_operator_who_would_stop_themself_is_asked_first(operator: Client) -> None:
    User.objects.update(email_confirmed_at=None)
    review = open_sheet(operator).tick("accounts_email_required").fill("api_key_budget", "50").send()
    assert "You would stop yourself: your own e-mail address is not confirmed" in text_of(review)

    sheet = Sheet(operator, fields_of(review))
    again = sheet.send("save")
    assert "Nothing was saved: tick the box if you mean it." in text_of(again)
    assert Setting.objects.count() == 0

    Sheet(operator, fields_of(again)).tick("knowing").send("save")
    assert gates() == {"accounts_email_required": True}


def test_an_operator_is_told_when_no_superuser_could_act_any_more(operator: Client) -> None:
    owner = factories.make_owner(superuser=True)
    make_user(is_superuser=True, is_active=False, referral_code="a-code")
    User.objects.filter(pk=owner.pk).update(referral_code="")
    review = text_of(open_sheet(operator).tick("accounts_referral_required").send())
    assert "No superuser could act any more: they have given no referral code." in review
    assert "You would stop yourself" not in review


def test_an_operator_who_stops_nobody_here_is_not_asked(operator: Client) -> None:
    factories.make_owner(superuser=True)
    review = open_sheet(operator).tick("accounts_email_required").send()
    assert "knowing" not in review.content.decode()
    Sheet(operator, fields_of(review)).send("save")
    assert gates() == {"accounts_email_required": True}


def test_a_gate_is_opened_without_a_question(operator: Client) -> None:
    factories.set_setting("accounts_email_required", True)
    review = open_sheet(operator).untick("accounts_email_required").send()
    assert "knowing" not in review.content.decode()
