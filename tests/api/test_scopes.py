"""What a key may call (PS-5, KY-3): a random world against a small oracle of its own, over HTTP; and each rule by itself."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.api import Module, registry
from apps.api.models import ApiKey, Setting
from tests.api import factories
from tests.api.factories import Machine

pytestmark = pytest.mark.sqlite

MODULES = ("one", "two")
SCOPES = ("one:read", "two:read")
PERMISSIONS = ("api.view_setting", "api.add_setting", "api.change_setting")
CLOSING = ("disabled_modules", "api_disabled_modules", "api_disabled_tools")
UNREADABLE = ("text", True, {"one": True}, [1], [None], 7)
SYSTEM = {f"system.{name}" for name in ("whoami", "problems", "get_approval", "list_approvals", "cancel_approval")}


@dataclass(frozen=True, kw_only=True)
class Declared:
    """A tool of the random world."""

    module: str
    scope: str
    permission: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.module}.tool{self.number}"


@dataclass(kw_only=True)
class World:
    tools: list[Declared]
    key_scopes: list[str]
    own: list[str]
    by_group: list[str]
    superuser: bool
    switches: dict[str, Any] = field(default_factory=dict)

    def is_open(self, tool: Declared) -> bool:
        """The module is on, its API is on, and the tool is not hidden; nothing of it is unreadable."""
        lists = [self.switches.get(name, []) for name in CLOSING]
        if not all(isinstance(names, list) and all(isinstance(name, str) for name in names) for names in lists):
            return False
        modules_off, api_off, hidden = lists
        return tool.module not in modules_off and tool.module not in api_off and tool.name not in hidden

    def callable_tools(self) -> set[str]:
        """The oracle: PS-5 and KY-3, word for word."""
        rights = {*self.own, *self.by_group}
        found = set()
        for tool in filter(self.is_open, self.tools):
            on_scope = [other for other in self.tools if other.scope == tool.scope and self.is_open(other)]
            held = self.superuser or all(other.permission in rights for other in on_scope)
            if held and tool.scope in self.key_scopes:
                found.add(tool.name)
        return found


def _tools() -> st.SearchStrategy[list[Declared]]:
    one = st.tuples(st.sampled_from(MODULES), st.sampled_from(SCOPES), st.sampled_from(PERMISSIONS))
    return st.lists(one, min_size=2, max_size=6).map(
        lambda rows: [
            Declared(module=module, scope=scope, permission=permission, number=number)
            for number, (module, scope, permission) in enumerate(rows)
        ]
    )


def _some(names: tuple[str, ...]) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(names), unique=True)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tools = draw(_tools())
    hidden = _some(tuple(tool.name for tool in tools))
    modules = _some((*MODULES, "unknown"))
    broken = st.sampled_from(UNREADABLE)
    return World(
        tools=tools,
        key_scopes=draw(st.one_of(st.just(list(SCOPES)), _some((*SCOPES, "un:known")))),
        own=draw(_some(PERMISSIONS)),
        by_group=draw(st.one_of(st.just([]), _some(PERMISSIONS))),
        superuser=draw(st.sampled_from([False, False, False, True])),
        switches=draw(
            st.fixed_dictionaries(
                {},
                optional={
                    "disabled_modules": st.one_of(modules, modules, modules, broken),
                    "api_disabled_modules": st.one_of(modules, modules, modules, broken),
                    "api_disabled_tools": st.one_of(hidden, hidden, hidden, broken),
                },
            )
        ),
    )


def _modules(world: World) -> list[Module]:
    made = {key: Module(key=key, name=key) for key in MODULES}
    for tool in world.tools:
        made[tool.module].tool(
            tool.name, scope=tool.scope, permission=tool.permission, input_schema={}, annotations={"read_only": True}
        )(lambda given, ctx: {"called": True})
    return list(made.values())


def _install(world: World, machine: Machine) -> None:
    assert machine.key is not None
    owner: Any = machine.key.owner
    type(owner).objects.filter(pk=owner.pk).update(is_superuser=world.superuser)
    group, _ = Group.objects.get_or_create(name="group")
    owner.groups.set([group])
    owner.user_permissions.set(_permissions(world.own))
    group.permissions.set(_permissions(world.by_group))
    ApiKey.objects.filter(pk=machine.key.pk).update(scopes=world.key_scopes)
    Setting.objects.all().delete()
    for name, value in {**world.switches, "api_key_budget": 1_000_000}.items():
        factories.set_setting(name, value)


def _permissions(names: list[str]) -> list[Permission]:
    return list(Permission.objects.filter(codename__in=[name.partition(".")[2] for name in names]))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(world=worlds())
def test_the_listing_is_what_may_be_called_and_the_oracle_agrees(transactional_db: None, world: World) -> None:
    machine = _machine()
    with registry.using(*_modules(world)):
        _install(world, machine)
        listed = set(machine.tools()) - SYSTEM
        answers = {tool.name: machine.call(tool.name) for tool in world.tools}
    called = {name for name, answer in answers.items() if answer.status_code == 200}
    assert listed == called == world.callable_tools()
    assert {answer.status_code for answer in answers.values()} <= {200, 403, 404}
    for tool in world.tools:
        assert (answers[tool.name].status_code == 404) is not world.is_open(tool)


_made: list[Machine] = []


def _machine() -> Machine:
    """One machine for all examples of a run; the database is empty when the first of them begins."""
    if not _made or _made[0].key is None or not ApiKey.objects.filter(pk=_made[0].key.pk).exists():
        _made[:] = [factories.make_machine(owner=factories.make_owner())]
    return _made[0]


# --- Each rule by itself --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def opened(transactional_db: None) -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def _world(opened: ExitStack, *rows: tuple[str, str, str | None]) -> None:
    """Tools given by name, scope and permission."""
    made = {key: Module(key=key, name=key) for key in MODULES}
    for name, scope, permission in rows:
        made[name.partition(".")[0]].tool(
            name, scope=scope, permission=permission, input_schema={}, annotations={"read_only": True}
        )(lambda given, ctx: {"called": True})
    opened.enter_context(registry.using(*made.values()))


VIEW, ADD, CHANGE = PERMISSIONS


def _scopes(machine: Machine) -> list[str]:
    scopes: list[str] = machine.call("system.whoami").json()["scopes"]
    return scopes


def test_a_scope_is_held_by_who_holds_the_permission_of_every_open_tool_on_it(opened: ExitStack) -> None:
    _world(opened, ("one.a", "one:read", VIEW), ("two.b", "one:read", ADD))
    owner = factories.make_owner(permissions=[VIEW])
    machine = factories.make_machine(owner=owner, scopes=["one:read"])
    assert _scopes(machine) == []
    factories.set_setting("api_disabled_tools", ["two.b"])
    assert _scopes(machine) == ["one:read"]
    factories.set_setting("api_disabled_tools", [])
    assert machine.call("one.a").status_code == 403
    factories.grant(owner, ADD)
    assert machine.call("one.a").status_code == 200


def test_a_scope_with_no_open_tool_is_held_by_nobody(opened: ExitStack) -> None:
    _world(opened, ("one.a", "one:read", VIEW))
    machine = factories.make_machine(scopes=["one:read", "un:known"])
    assert _scopes(machine) == ["one:read"]
    factories.set_setting("disabled_modules", ["one"])
    assert _scopes(machine) == []


def test_a_tool_without_a_permission_closes_its_scope_to_superusers_too(opened: ExitStack) -> None:
    _world(opened, ("one.a", "one:read", VIEW), ("one.b", "one:read", None))
    machine = factories.make_machine(scopes=["one:read"])
    assert _scopes(machine) == []
    assert machine.tools() == sorted(SYSTEM)


def test_a_key_never_holds_more_than_it_was_given(opened: ExitStack) -> None:
    _world(opened, ("one.a", "one:read", VIEW), ("one.b", "one:write", CHANGE))
    machine = factories.make_machine(scopes=["one:read"])
    assert (machine.call("one.a").status_code, machine.call("one.b").status_code) == (200, 403)
    assert "one.b" not in machine.tools()


def test_the_handler_sees_the_owners_full_scope_never_narrowed_by_the_keys(opened: ExitStack) -> None:
    module = Module(key="one", name="one")

    @module.tool("one.see", scope="one:read", permission=VIEW, input_schema={}, annotations={"read_only": True})
    def see(given: Any, ctx: Any) -> dict[str, Any]:
        return {"can": [name for name in PERMISSIONS if ctx.scope.can(name)], "scopes": sorted(ctx.scopes)}

    opened.enter_context(registry.using(module))
    owner = factories.make_owner(permissions=[VIEW, CHANGE])
    machine = factories.make_machine(owner=owner, scopes=["one:read", "un:known"])
    assert machine.call("one.see").json() == {"can": [VIEW, CHANGE], "scopes": ["one:read"]}


@pytest.mark.parametrize("superuser", [True, False])
def test_an_inactive_owner_holds_nothing(opened: ExitStack, superuser: bool) -> None:
    _world(opened, ("one.a", "one:read", VIEW))
    owner = factories.make_owner(superuser=superuser, is_active=False)
    machine = factories.make_machine(owner=owner, scopes=["one:read"])
    assert machine.call("system.whoami").status_code == 401
