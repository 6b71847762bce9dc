"""What Settings → API and the assistant show of each tool (LS-5): its fields, whether a session may call it, and every reason why not."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.translation import gettext_lazy

from apps.activity.models import Entry
from apps.api import Module, credentials, executor, people, preview, ratelimit, registry, switches
from apps.api.availability import Availability, Closed
from apps.api.models import Confirmation, Setting
from apps.api.people import Scope, Session
from apps.api.ratelimit import Bucket
from tests.accounts.factories import make_group
from tests.api import factories
from tests.api.person import Person, make_person

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

VIEW, ADD, CHANGE = "api.view_setting", "api.add_setting", "api.change_setting"
FIELDS = {"module_key", "module_name", "name", "kind", "permission", "scope", "danger", "status"}
READS: Any = {"read_only": True}

NOBODY = Scope(person_id="1", name="Nobody")
OWNER = Scope(person_id="2", name="Owner", is_superuser=True)


def holder(*permissions: str) -> Scope:
    return Scope(person_id="3", name="Holder", permissions=frozenset(permissions))


def is_many(given: Any, ctx: Any) -> bool:
    return True


def declare(module: Module, name: str, scope: str | None, permission: str | None, **more: Any) -> None:
    schema = {"type": "object", "properties": {}}
    tool = module.tool(name, scope=scope, permission=permission, **{"input_schema": schema, **more})(
        lambda given, ctx: {"name": name}
    )
    if tool.is_write:
        tool.preview(lambda given, ctx: (preview("Something."), "fixed"))


def make_tills() -> Module:
    """A read and a write on scopes of their own, and one of each on a scope that they share."""
    module = Module(key="tills", name="Tills")
    declare(module, "tills.look", "tills:read", VIEW, annotations=READS)
    declare(module, "tills.open", "tills:write", CHANGE)
    declare(module, "tills.count", "tills:count", VIEW, annotations=READS)
    declare(module, "tills.recount", "tills:count", CHANGE, danger="always")
    return module


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def tills(opened: ExitStack) -> None:
    """Only the tills, where the agent may act."""
    opened.enter_context(registry.using(make_tills()))
    factories.set_setting("api_session_write_modules", ["tills"])


def reasons(scope: Scope | None = None) -> dict[str, list[str]]:
    """By tool, why it is closed: nothing for an available one."""
    return {
        row.name.partition(".")[2]: [*row.status.reasons] if isinstance(row.status, Closed) else []
        for row in executor.tool_availability(scope)
    }


# --- What is shown ----------------------------------------------------------------------------------------------------


def test_each_tool_is_shown_with_its_eight_fields(opened: ExitStack) -> None:
    module = Module(key="shelves", name="Shelves")
    declare(module, "shelves.look", "shelves:read", VIEW, annotations=READS)
    declare(module, "shelves.fill", "shelves:write", CHANGE, danger=is_many)
    declare(module, "shelves.burn", "shelves:write", ADD, danger="always", annotations={"read_only": False})
    opened.enter_context(registry.using(module))
    factories.set_setting("api_session_write_modules", ["shelves"])
    common: dict[str, Any] = {"module_key": "shelves", "module_name": "Shelves", "status": "available"}
    burn = {"name": "shelves.burn", "kind": "write", "permission": ADD, "scope": "shelves:write", "danger": "always"}
    fill = {"name": "shelves.fill", "kind": "write", "permission": CHANGE, "scope": "shelves:write", "danger": is_many}
    look = {"name": "shelves.look", "kind": "read", "permission": VIEW, "scope": "shelves:read", "danger": None}
    assert executor.tool_availability(None) == [Availability(**common, **row) for row in (burn, fill, look)]
    assert {field.name for field in fields(Availability)} == FIELDS


def test_a_tool_whose_author_forgot_to_say_that_it_reads_is_shown_as_a_write(opened: ExitStack) -> None:
    module = Module(key="shelves", name="Shelves")
    for name, hints in {"a": {}, "b": {"read_only": False}, "c": {"read_only": 1}, "d": {"read_only": True}}.items():
        declare(module, f"shelves.{name}", "shelves:run", VIEW, annotations=hints)
    opened.enter_context(registry.using(module))
    assert [row.kind for row in executor.tool_availability(None)] == ["write", "write", "write", "read"]


def test_the_order_is_by_the_modules_name_and_then_by_the_tools(opened: ExitStack) -> None:
    """By the name that people read, not by the key, and whatever the order of declaration is."""
    first, second, third = Module(key="a", name="Zoo"), Module(key="b", name="Bar"), Module(key="c", name="Bar")
    for module, names in ((first, ("z", "a")), (second, ("z", "a")), (third, ("m",))):
        for name in names:
            declare(module, f"{module.key}.{name}", "run:run", VIEW, annotations=READS)
    opened.enter_context(registry.using(first, third, second))
    found = [(row.module_name, row.name) for row in executor.tool_availability(None)]
    assert found == [("Bar", "b.a"), ("Bar", "b.z"), ("Bar", "c.m"), ("Zoo", "a.a"), ("Zoo", "a.z")]


def test_a_modules_name_is_shown_as_a_text_in_the_readers_language(opened: ExitStack) -> None:
    module = Module(key="shelves", name=gettext_lazy("Shelves"))  # type: ignore[arg-type]  # as authors write it
    declare(module, "shelves.look", "shelves:read", VIEW, annotations=READS)
    opened.enter_context(registry.using(module))
    assert [type(row.module_name) for row in executor.tool_availability(None)] == [str]


def test_cores_own_tools_public_ones_and_ignored_duplicates_are_not_shown(opened: ExitStack) -> None:
    first, second = Module(key="first", name="First"), Module(key="second", name="Second")
    declare(first, "first.look", "first:read", VIEW, annotations=READS)
    declare(first, "first.show", None, None, annotations=READS, audience="public")
    declare(second, "first.look", "second:read", ADD, annotations=READS)  # the same name
    declare(second, "first_look", "second:read", ADD, annotations=READS)  # the same name for clients without dots
    declare(second, "first.show", "second:read", VIEW, annotations=READS)  # another audience: no duplicate
    opened.enter_context(registry.using(first, second))
    found = [(row.module_key, row.name, row.permission) for row in executor.tool_availability(OWNER)]
    assert found == [("first", "first.look", VIEW), ("second", "first.show", VIEW)]


def test_an_ignored_duplicate_has_no_say_in_who_holds_its_scope(opened: ExitStack) -> None:
    first, second = Module(key="first", name="First"), Module(key="second", name="Second")
    declare(first, "first.look", "first:read", VIEW, annotations=READS)
    declare(second, "first.look", "first:read", ADD, annotations=READS)
    opened.enter_context(registry.using(first, second))
    assert reasons(holder(VIEW)) == {"look": []}


@pytest.mark.usefixtures("tills")
def test_every_tool_is_named_whoever_asks() -> None:
    names = [[row.name for row in executor.tool_availability(scope)] for scope in (None, NOBODY, OWNER, holder(VIEW))]
    assert names == [["tills.count", "tills.look", "tills.open", "tills.recount"]] * 4


def test_without_modules_there_is_nothing_to_show(opened: ExitStack) -> None:
    opened.enter_context(registry.using())
    assert executor.tool_availability(OWNER) == []


# --- The settings' reasons --------------------------------------------------------------------------------------------


ALL_OPEN: dict[str, list[str]] = {"count": [], "look": [], "open": [], "recount": []}


def every(*why: str, writes: tuple[str, ...] = ()) -> dict[str, list[str]]:
    """The same reasons for each of the tills' tools, and more for its writes."""
    return {name: [*why, *(writes if name in ("open", "recount") else ())] for name in ALL_OPEN}


ODD = {"odd": True}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, list[str]]]] = {
    "nothing": ({}, ALL_OPEN),
    "module off": ({"disabled_modules": ["tills"]}, every("module_disabled")),
    "api off": ({"api_disabled_modules": ["tills"]}, every("api_off")),
    "one hidden": ({"api_disabled_tools": ["tills.look"]}, {**ALL_OPEN, "look": ["tool_hidden"]}),
    "box off": ({"api_session_write_modules": []}, every(writes=("agent_writes_off",))),
    "other names": (
        {
            "disabled_modules": ["till", "Tills", "tills.look"],
            "api_disabled_modules": ["system", "tills.look"],
            "api_disabled_tools": ["tills", "look", "tills_look"],
        },
        ALL_OPEN,
    ),
    "module and api off": (
        {"disabled_modules": ["tills"], "api_disabled_modules": ["tills"]},
        every("module_disabled", "api_off"),
    ),
    "hidden in a module that is off": (
        {"disabled_modules": ["tills"], "api_disabled_tools": ["tills.look"]},
        {**every("module_disabled"), "look": ["module_disabled", "tool_hidden"]},
    ),
    "a write that is hidden, box off": (
        {"api_disabled_tools": ["tills.open"], "api_session_write_modules": []},
        {**every(writes=("agent_writes_off",)), "open": ["tool_hidden", "agent_writes_off"]},
    ),
    "everything": (
        {
            "disabled_modules": ["tills"],
            "api_disabled_modules": ["tills"],
            "api_disabled_tools": ["tills.look", "tills.open", "tills.count", "tills.recount"],
            "api_session_write_modules": [],
        },
        every("module_disabled", "api_off", "tool_hidden", writes=("agent_writes_off",)),
    ),
    "hidden list unreadable": ({"api_disabled_tools": ODD}, every("api_off")),
    "hidden list with a number": ({"api_disabled_tools": ["tills.look", 1]}, every("api_off")),
    "api list unreadable": ({"api_disabled_modules": "none"}, every("api_off")),
    "api list unreadable, one hidden": (
        {"api_disabled_modules": 0, "api_disabled_tools": ["tills.look"]},
        {**every("api_off"), "look": ["api_off", "tool_hidden"]},
    ),
    "module list unreadable": ({"disabled_modules": ODD}, every("module_disabled")),
    "box list unreadable": ({"api_session_write_modules": "tills"}, every(writes=("agent_writes_off",))),
    "box list with a number": ({"api_session_write_modules": ["tills", 1]}, every(writes=("agent_writes_off",))),
    "keys switched off": ({"api_admin_enabled": False}, ALL_OPEN),
    "keys' switch unreadable": ({"api_admin_enabled": "no"}, ALL_OPEN),
    "maintenance": ({"maintenance_mode": True}, ALL_OPEN),
}


@pytest.mark.usefixtures("tills")
@pytest.mark.parametrize("case", SETTINGS)
def test_the_settings_close_tools_for_their_reasons_in_this_order(case: str) -> None:
    rows, expected = SETTINGS[case]
    for name, value in rows.items():
        factories.set_setting(name, value)
    assert reasons() == reasons(OWNER) == expected
    assert reasons(NOBODY) == {name: [*why, "no_permission"] for name, why in expected.items()}


@pytest.mark.usefixtures("tills")
def test_without_a_row_no_module_lets_the_agent_act() -> None:
    Setting.objects.all().delete()
    assert reasons() == every(writes=("agent_writes_off",))


def test_a_module_that_is_closed_leaves_the_others_open(opened: ExitStack) -> None:
    other = Module(key="shelves", name="Shelves")
    declare(other, "shelves.see", "shelves:read", VIEW, annotations=READS)
    opened.enter_context(registry.using(make_tills(), other))
    factories.set_setting("api_session_write_modules", ["tills"])
    factories.set_setting("api_disabled_modules", ["shelves"])
    assert reasons() == {"see": ["api_off"], **ALL_OPEN}


# --- The person's reason ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tills")
def test_an_open_tool_asks_for_its_permission_and_for_those_of_every_open_tool_on_its_scope() -> None:
    lacks = ["no_permission"]
    assert reasons(holder(VIEW)) == {"count": lacks, "look": [], "open": lacks, "recount": lacks}
    assert reasons(holder(CHANGE)) == {"count": lacks, "look": lacks, "open": [], "recount": lacks}
    assert reasons(holder(ADD)) == every("no_permission")
    assert reasons(holder(VIEW, CHANGE)) == reasons(OWNER) == reasons() == ALL_OPEN


# What closes `tills.recount`, and how many of its scope's tools it leaves open.
CLOSED: dict[str, tuple[str, Any, list[str]]] = {
    "module off": ("disabled_modules", ["tills"], ["module_disabled"]),
    "api off": ("api_disabled_modules", ["tills"], ["api_off"]),
    "hidden": ("api_disabled_tools", ["tills.recount"], ["tool_hidden"]),
    "box off": ("api_session_write_modules", [], ["agent_writes_off"]),
    "lists unreadable": ("api_disabled_tools", 7, ["api_off"]),
}


@pytest.mark.usefixtures("tills")
@pytest.mark.parametrize("why", CLOSED)
def test_a_closed_tool_asks_for_its_own_permission_alone(why: str) -> None:
    """CHANGE grants it, though its scope needs VIEW as well: so opening it still leaves it closed."""
    name, value, closed = CLOSED[why]
    assert reasons(holder(CHANGE))["recount"] == ["no_permission"]
    factories.set_setting(name, value)
    assert reasons(holder(CHANGE))["recount"] == closed
    assert reasons(OWNER)["recount"] == closed
    assert reasons(holder(VIEW))["recount"] == [*closed, "no_permission"]


@pytest.mark.usefixtures("tills")
@pytest.mark.parametrize("name", ["disabled_modules", "api_disabled_modules"])
def test_a_permission_counts_whether_or_not_the_module_behind_it_is_on(name: str) -> None:
    factories.set_setting(name, ["tills", "api"])
    assert {why[-1] for why in reasons(NOBODY).values()} == {"no_permission"}
    assert not any("no_permission" in why for why in reasons(holder(VIEW, CHANGE)).values())


@pytest.mark.usefixtures("tills")
def test_a_hidden_tool_no_longer_stands_between_a_person_and_its_scope() -> None:
    assert reasons(holder(VIEW))["count"] == ["no_permission"]
    factories.set_setting("api_disabled_tools", ["tills.recount"])
    assert reasons(holder(VIEW))["count"] == []


@pytest.mark.usefixtures("tills")
def test_a_write_that_only_the_agent_may_not_propose_still_does() -> None:
    """It is open to keys: on, and not hidden."""
    factories.set_setting("api_session_write_modules", [])
    assert reasons(holder(VIEW))["count"] == ["no_permission"]


@pytest.mark.parametrize("off", [[], ["odd"]])
def test_a_tool_without_a_permission_or_a_scope_is_nobodys_open_or_closed(opened: ExitStack, off: list[str]) -> None:
    """The checks refuse such tools; were one there, even the owner may not call it, nor what shares its scope."""
    module = Module(key="odd", name="Odd")
    declare(module, "odd.bare", "odd:run", None, annotations=READS)
    declare(module, "odd.beside", "odd:run", VIEW, annotations=READS)
    declare(module, "odd.unscoped", None, VIEW, annotations=READS)
    opened.enter_context(registry.using(module))
    factories.set_setting("api_disabled_modules", off)
    found = reasons(OWNER)
    if off:
        assert found == {"bare": ["api_off", "no_permission"], "beside": ["api_off"], "unscoped": ["api_off"]}
    else:
        assert found == {name: ["no_permission"] for name in ("bare", "beside", "unscoped")}


# --- A live session ---------------------------------------------------------------------------------------------------


def scope_of(person: Person) -> Scope:
    found = people.current().session(person.ref, switches.parse(credentials.read(None).settings))
    assert isinstance(found, Session)
    return found.scope


def available(scope: Scope) -> list[str]:
    return [row.name for row in executor.tool_availability(scope) if row.status == "available"]


@pytest.mark.usefixtures("tills")
def test_what_is_available_to_a_session_is_what_it_lists() -> None:
    for permissions in ([], [VIEW], [CHANGE], [VIEW, CHANGE]):
        person = make_person(permissions=permissions)
        assert available(scope_of(person)) == person.tools()


@pytest.mark.usefixtures("tills")
def test_a_session_that_acts_as_a_role_is_shown_what_that_role_may() -> None:
    reader = make_group(permissions=[VIEW])
    person = make_person(permissions=[CHANGE], is_superuser=True, groups=[reader])
    assert len(available(scope_of(person))) == 4
    person.session.acting_role = reader
    person.session.save()
    assert available(scope_of(person)) == person.tools() == ["tills.look"]


# --- It only looks ----------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("tills")
def test_nothing_is_charged_or_written() -> None:
    person = make_person(permissions=[VIEW, CHANGE])
    scope = scope_of(person)
    settings = list(Setting.objects.values_list("name", "value", "updated_at"))
    bucket = Bucket(policy="person", name=f"person:{person.user.pk}", budget=300)
    executor.tool_availability(scope)
    executor.tool_availability(None)
    assert ratelimit.levels([bucket])[0].remaining == 300
    assert (Entry.objects.count(), Confirmation.objects.count()) == (0, 0)
    assert list(Setting.objects.values_list("name", "value", "updated_at")) == settings


@pytest.mark.usefixtures("tills")
@pytest.mark.parametrize("scope", [None, holder(VIEW)])
def test_it_asks_for_the_settings_once_and_for_nothing_else(
    monkeypatch: pytest.MonkeyPatch, scope: Scope | None
) -> None:
    # The prepared statement goes past what Django counts.
    monkeypatch.setitem(connection.settings_dict, "DISABLE_SERVER_SIDE_CURSORS", True)
    with CaptureQueriesContext(connection) as asked:
        executor.tool_availability(scope)
    assert [("SELECT" in row["sql"], "api_setting" in row["sql"]) for row in asked] == [(True, True)]


@pytest.mark.usefixtures("tills")
def test_a_change_of_the_settings_shows_at_the_next_look() -> None:
    assert reasons() == ALL_OPEN
    factories.set_setting("api_disabled_tools", ["tills.look"])
    assert reasons()["look"] == ["tool_hidden"]
    factories.set_setting("api_disabled_tools", [])
    assert reasons() == ALL_OPEN
