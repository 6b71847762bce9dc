"""The switches and settings of the operator (RF-1, ST-2): they hold for the next call, and what can't be read is closed."""

from typing import Any

import pytest
from django.db import connection
from django.db.models import JSONField, Value
from django.test.utils import CaptureQueriesContext

from apps.api import credentials, switches
from apps.api.models import Setting
from apps.api.registry import Registry
from apps.api.switches import Unreadable
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.test_flow_table import fresh_address

pytestmark = pytest.mark.sqlite

NO_LISTS: list[Any] = ["probe", "", 7, 0, True, False, {}, {"probe": True}, [1], ["probe.echo", None], [["probe"]], 1.5]
NO_FLAGS: list[Any] = ["true", "", 0, 1, [], {}, [True], {"on": True}]


def ids(value: Any) -> str:
    return repr(value)


def _code(answer: Any) -> tuple[int, str | None]:
    return answer.status_code, answer.json().get("code")


# --- RF-1 -----------------------------------------------------------------------------------------------------------------------------


def test_each_audience_has_a_switch_of_its_own(machine: Machine) -> None:
    visitor = Machine()
    assert _code(visitor.call("probe.look")) == (403, "api_disabled"), "visitors are out until somebody lets them in"
    factories.set_setting("api_public_enabled", True)
    factories.set_setting("api_admin_enabled", False)
    assert _code(machine.call("probe.echo")) == (403, "api_disabled")
    assert _code(visitor.call("probe.look", REMOTE_ADDR=fresh_address())) == (200, None)
    factories.set_setting("api_admin_enabled", True)
    assert _code(machine.call("probe.echo")) == (200, None)


def test_maintenance_answers_everybody_503_and_when_to_come_back(machine: Machine, visitor: Machine) -> None:
    factories.set_setting("maintenance_mode", True)
    answers = [
        machine.call("probe.echo"),
        machine.call("no.such"),
        machine.client.get("/api/v1/tools", headers=machine.headers()),
        machine.client.get("/api/v1/tools"),
        visitor.call("probe.look"),
        visitor.client.get("/api/v1/public/tools"),
    ]
    for answer in answers:
        assert (*_code(answer), answer.json()["retry"]) == (503, "maintenance", "later")
        assert int(answer.headers["Retry-After"]) > 0
    factories.set_setting("maintenance_mode", False)
    assert _code(machine.call("probe.echo")) == (200, None)


def test_the_switch_comes_before_maintenance_and_before_the_key(machine: Machine) -> None:
    factories.set_setting("maintenance_mode", True)
    factories.set_setting("api_admin_enabled", False)
    assert _code(Machine(text="nothing").call("probe.echo")) == (403, "api_disabled")
    factories.set_setting("api_admin_enabled", True)
    assert _code(Machine(text="nothing").call("probe.echo")) == (503, "maintenance")


# --- ST-2: what can't be read is closed -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["api_disabled_tools", "api_disabled_modules"])
@pytest.mark.parametrize("value", NO_LISTS, ids=ids)
def test_an_unreadable_list_closes_every_tool(machine: Machine, visitor: Machine, name: str, value: Any) -> None:
    factories.set_setting(name, value)
    for tool in ("probe.echo", "probe.store", "system.whoami", "no.such"):
        assert _code(machine.call(tool)) == (404, "not_found")
    assert _code(visitor.call("probe.look", REMOTE_ADDR=fresh_address())) == (404, "not_found")
    assert machine.tools() == []


@pytest.mark.parametrize("value", NO_LISTS, ids=ids)
def test_an_unreadable_list_of_modules_that_are_off_closes_every_module(machine: Machine, value: Any) -> None:
    factories.set_setting("disabled_modules", value)
    for tool in ("probe.echo", "probe.store", "system.whoami"):
        assert _code(machine.call(tool)) == (404, "module_disabled")
    assert machine.tools() == []


@pytest.mark.parametrize("value", NO_FLAGS, ids=ids)
def test_an_unreadable_switch_is_closed(machine: Machine, value: Any) -> None:
    for name, answer in (
        ("api_admin_enabled", (403, "api_disabled")),
        ("maintenance_mode", (503, "maintenance")),
        ("accounts_referral_required", (401, "unauthorized")),
    ):
        factories.set_setting(name, value)
        assert _code(machine.call("probe.echo", REMOTE_ADDR=fresh_address())) == answer
        Setting.objects.all().delete()
    factories.set_setting("api_public_enabled", value)
    assert _code(Machine().call("probe.look")) == (403, "api_disabled")


def test_a_null_is_no_value(machine: Machine) -> None:
    for name, answer in (
        ("api_disabled_tools", (404, "not_found")),
        ("disabled_modules", (404, "module_disabled")),
        ("api_admin_enabled", (403, "api_disabled")),
    ):
        Setting.objects.create(name=name, value=Value(None, JSONField()))
        assert _code(machine.call("probe.echo")) == answer
        Setting.objects.all().delete()


@pytest.mark.parametrize("value", ["600", 0, -1, 1.5, True, [], 10**12], ids=ids)
def test_an_unreadable_budget_is_the_default(machine: Machine, value: Any) -> None:
    factories.set_setting("api_key_budget", value)
    assert machine.call("probe.echo").headers["RateLimit-Policy"] == '"key";q=600;w=60'


def test_unknown_names_and_empty_lists_close_nothing(machine: Machine) -> None:
    for name in ("api_disabled_tools", "api_disabled_modules", "disabled_modules"):
        factories.set_setting(name, [])
    factories.set_setting("something_else", {"odd": ["value"]})
    factories.set_setting("api_disabled_tools", ["probe", "echo", "no.such", "PROBE.ECHO"])
    assert _code(machine.call("probe.echo")) == (200, None)


def test_every_fault_is_in_the_log_and_nowhere_else(machine: Machine, caplog: pytest.LogCaptureFixture) -> None:
    factories.set_setting("api_disabled_tools", "probe.echo, a canary")
    answer = machine.call("probe.echo")
    lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
    assert [line["setting"] for line in lines if line["event"] == "setting_unreadable"] == ["api_disabled_tools"]
    assert "canary" not in answer.content.decode()


# --- The value ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "[]", "null", "{", '"x"', "7"])
def test_rows_that_cannot_be_read_at_all_close_everything(text: str, tools: Registry) -> None:
    found = switches.parse(text)
    assert (found.api_admin_enabled, found.api_public_enabled, found.maintenance_mode) == (False, False, True)
    assert (found.accounts_email_required, found.accounts_referral_required) == (True, True)
    assert not any(found.is_open(tool) or found.is_on(tool.module) for tool in tools.declared())


def test_without_rows_the_defaults_hold(tools: Registry) -> None:
    found = switches.parse("{}")
    assert (found.api_admin_enabled, found.api_public_enabled, found.maintenance_mode) == (True, False, False)
    assert (found.api_key_budget, found.api_network_budget, found.api_token_budget) == (600, 60, 60)
    assert all(found.is_open(tool) and found.is_on(tool.module) for tool in tools.declared())


def test_the_same_rows_are_the_same_value() -> None:
    """What is derived from the switches may be kept by them."""
    assert switches.parse('{"api_key_budget": 5}') is switches.parse('{"api_key_budget": 5}')


@pytest.mark.parametrize("name", switches.RULES)
def test_every_default_and_every_stand_in_is_one_that_the_rule_itself_takes_or_closes(name: str) -> None:
    rule = switches.RULES[name]
    default = sorted(rule.default) if isinstance(rule.default, frozenset) else rule.default
    assert switches.checked(name, default) == rule.default
    with pytest.raises(Unreadable):
        switches.checked(name, {"odd": 1})


def test_the_settings_cost_a_call_no_query_of_their_own(machine: Machine) -> None:
    factories.set_setting("api_disabled_tools", ["probe.search"])
    machine.call("probe.echo")
    with CaptureQueriesContext(connection) as captured:
        machine.call("probe.echo")
    asked = [query["sql"] for query in captured.captured_queries if not query["sql"].startswith(("BEGIN", "ROLLBACK"))]
    assert len([sql for sql in asked if not sql.startswith(("SAVEPOINT", "PREPARE"))]) == 1


def test_odd_names_and_texts_of_settings_reach_the_statement_unharmed(transactional_db: None) -> None:
    odd = {'a"b': 'c"d', "ü\n": "\\u0000 \u2028", "'; DROP": [{"x": None}], "number": 12345678901234567890}
    for name, value in odd.items():
        factories.set_setting(name, value)
    assert switches.parse(credentials.read(None).settings).api_admin_enabled is True


# --- Hiding and closing, seen by listing and call alike -------------------------------------------------------------------------------


def test_hiding_a_tool_and_closing_a_module_hold_for_the_next_listing(machine: Machine) -> None:
    everything = machine.tools()
    assert "probe.echo" in everything
    factories.set_setting("api_disabled_tools", ["probe.echo"])
    assert machine.tools() == [name for name in everything if name != "probe.echo"]
    factories.set_setting("disabled_modules", ["probe"])
    assert machine.tools() == [
        "system.cancel_approval",
        "system.get_approval",
        "system.list_approvals",
        "system.problems",
        "system.whoami",
    ]
    Setting.objects.all().delete()
    assert machine.tools() == everything


def test_a_hidden_tool_does_not_exist_for_a_key_without_its_scope_either(machine: Machine) -> None:
    stranger = factories.make_machine(scopes=[probe.WRITE])
    assert _code(stranger.call("probe.echo")) == (403, "forbidden")
    factories.set_setting("api_disabled_tools", ["probe.echo"])
    assert _code(stranger.call("probe.echo")) == (404, "not_found")
