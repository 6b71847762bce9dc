"""The registry (MT-1, MT-5, MT-6, MT-7): what is found, who keeps a name, and that an unknown one costs the same among any number."""

import sys
from collections.abc import Callable
from typing import Any

import pytest
from structlog.testing import capture_logs

from apps.api import Module, registry
from apps.api.registry import Registry
from apps.api.tool import DeclarationError
from tests.api import factories, probe
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite

READS: Any = {"read_only": True}
RIGHTS: Any = {"scope": probe.READ, "permission": probe.VIEW, "input_schema": {}, "annotations": READS}


def handler(given: Any, ctx: Any) -> dict[str, Any]:
    return {"called": True}


def make_module(key: str, *names: str, **declared: Any) -> Module:
    module = Module(key=key, name=key)
    for name in names:
        module.tool(name, **{**RIGHTS, **declared})(handler)
    return module


# --- MT-1 -----------------------------------------------------------------------------------------------------------------------------


def test_the_apps_tools_are_found_at_start_up_with_cores_own_first() -> None:
    found = registry.current().modules
    assert [module.key for module in found][:2] == ["system", "catalogue"]
    assert {"catalogue.list_products", "system.whoami"} <= {tool.name for tool in registry.current().of("admin")}


def test_tools_are_listed_by_name() -> None:
    tools = Registry([make_module("b", "b.two", "b.one"), make_module("a", "a.three")])
    assert [tool.name for tool in tools.of("admin")] == ["a.three", "b.one", "b.two"]
    assert tools.of("public") == []


# --- MT-5: a name declared twice ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "clash"),
    [
        ("a.do_it", "a.do_it", True),
        ("a.do_it", "a.do.it", True),
        ("a.do.it", "a.do_it", True),
        ("a.do_it", "a.do_its", False),
    ],
)
def test_the_first_keeps_a_name_and_its_alias(first: str, second: str, clash: bool) -> None:
    with capture_logs() as lines:
        tools = Registry([make_module("a", first), make_module("a", second)])
    assert [tool.name for tool in tools.of("admin")] == ([first] if clash else [first, second])
    assert [line["event"] for line in lines] == (["tool_declared_twice"] if clash else [])
    assert len(tools.duplicates) == int(clash)
    assert tools.find("admin", first) is tools.modules[0].tools[0]


def test_an_ignored_duplicate_gives_nothing_away(transactional_db: None) -> None:
    """It is neither called nor listed, and its scope and permission count for nobody."""
    second = make_module("probe", "probe.echo", scope="probe:other", permission="api.delete_setting")
    with registry.using(probe.make_probe(), second):
        machine = factories.make_machine(scopes=[probe.READ, "probe:other"])
        assert machine.call("probe.echo", {"text": "x"}).json()["text"] == "x"
        assert machine.tools().count("probe.echo") == 1
        assert machine.call("system.whoami").json()["scopes"] == [probe.READ]


def test_the_audiences_have_names_of_their_own() -> None:
    public = make_module("b", "a.do_it", audience="public", scope=None, permission=None)
    tools = Registry([make_module("a", "a.do_it"), public])
    assert tools.find("admin", "a.do_it") is not tools.find("public", "a.do_it")
    assert tools.duplicates == []


# --- MT-6: lookup ---------------------------------------------------------------------------------------------------------------------


def _steps(call: Callable[[], Any]) -> int:
    """How many functions of the gate a call enters."""
    entered = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal entered
        entered += event == "call" and "/apps/api/" in frame.f_code.co_filename

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


@pytest.mark.parametrize("name", ["no.such", "many.tool7", "probe.echo", "Many.tool7", "many.tool7x"])
def test_a_name_costs_the_same_among_5000_tools(transactional_db: None, name: str) -> None:
    steps = []
    for number in (10, 5_000):
        many = make_module("many", *(f"many.tool{at}" for at in range(number)))
        with registry.using(probe.make_probe(), many):
            machine = factories.make_machine(scopes=[probe.READ])
            for _ in range(2):  # the first fills the caches of this registry and notes the key's use
                machine.call(name)
            steps.append(_steps(lambda: machine.call(name)))  # noqa: B023 - called at once
    assert steps[0] == steps[1] > 10


# --- MT-7: core's own module ----------------------------------------------------------------------------------------------------------


def test_every_key_may_call_cores_own_tools(transactional_db: None, tools: Registry) -> None:
    machine = factories.make_machine(owner=factories.make_owner(), scopes=[])
    assert machine.tools() == [
        "system.cancel_approval",
        "system.get_approval",
        "system.list_approvals",
        "system.problems",
        "system.whoami",
    ]
    assert machine.call("system.whoami").status_code == 200
    assert machine.call("system.problems").status_code == 200


def test_visitors_have_none_of_cores_own_tools(visitor: Machine) -> None:
    assert visitor.call("system.whoami").json()["code"] == "not_found"


def test_whoami_tells_the_key_its_scopes_and_what_is_left(transactional_db: None, tools: Registry) -> None:
    machine = factories.make_machine(scopes=[probe.READ, "un:known"], name="a reader", budget=25)
    assert machine.key is not None
    machine.call("probe.echo")
    assert machine.call("system.whoami").json() == {
        "key": {
            "id": machine.key.public_id,
            "name": "a reader",
            "family": str(machine.key.family_id),
            "requires_approval": False,
            "expires_at": None,
        },
        "scopes": [probe.READ],
        "limits": [{"policy": "key", "budget": 25, "window_seconds": 60, "remaining": 23}],
    }


def test_problems_lists_the_codes_of_core_and_of_the_modules(machine: Machine) -> None:
    rows = machine.call("system.problems").json()["problems"]
    by_code = {row["code"]: row for row in rows}
    assert [row["code"] for row in rows] == sorted(by_code)
    assert by_code["probe_refused"] == {
        "code": "probe_refused",
        "status": 409,
        "title": "Probe refused",
        "type": "http://testserver/problems/probe_refused",
        "retry": "never",
    }
    assert by_code["rate_limited"]["retry"] == "later"
    assert by_code["internal_error"]["status"] == 500


def test_no_module_can_be_the_system() -> None:
    with pytest.raises(DeclarationError):
        Module(key="system", name="System")


@pytest.mark.parametrize("name", ["system.steal", "probe.steal"])
def test_a_tool_without_a_scope_is_nobodys_unless_it_is_cores(transactional_db: None, name: str) -> None:
    """The checks refuse it at start-up; should they be silenced, it stays closed."""
    with registry.using(make_module("probe", name, scope=None, permission=None)):
        machine = factories.make_machine(scopes=[probe.READ])
        assert machine.call(name).json()["code"] in ("forbidden", "not_found")
        assert name not in machine.tools()
