"""Random worlds for `test_session_oracle`: tools of careless authors, settings of careless operators, and people."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from hypothesis import strategies as st

from apps.api import Module, preview
from tests.api.session_oracle import Declared, Rights

# Two modules of one name: their tools stand in one order together.
MODULES = {"alpha": "Tills", "beta": "Shelves", "gamma": "Shelves"}
KEYS = tuple(MODULES)
PERMISSIONS = ("api.view_setting", "api.add_setting", "api.change_setting")
NOBODYS = "ghost.never_granted"
MOMENTS = 4  # of each world: what one of them left in a cache must not answer the next

_READ, _WRITE = (True, True, True), (None, None, False, 1, "true")
_LISTS = ("disabled_modules", "api_disabled_modules", "api_disabled_tools", "api_session_write_modules")
_BROKEN: tuple[tuple[str, ...], ...] = (*[()] * 20, *[(name,) for name in _LISTS], _LISTS[1:3], _LISTS[::3])
_UNREADABLE_FLAGS: tuple[Any, ...] = (None, 0, "false", [])


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The rows of the settings, and a person in a session."""

    rows: dict[str, Any]
    rights: Rights


@dataclass(frozen=True, kw_only=True)
class World:
    tools: tuple[Declared, ...]
    moments: tuple[Moment, ...]


def _unreadable(names: Sequence[str]) -> st.SearchStrategy[Any]:
    """No list of texts, though each looks a little like one that names everything or nothing."""
    nothing: tuple[Any, ...] = (None, 0, False, "", {})
    numbers_and_objects: tuple[Any, ...] = (7, 1.5, True, " ".join(names), dict.fromkeys(names, True))
    lists: tuple[Any, ...] = ([*names, 1], [*names, None], [list(names)], [{}])
    return st.sampled_from([*nothing, *numbers_and_objects, *lists])


@st.composite
def _rows(draw: st.DrawFn, tools: Sequence[Declared]) -> dict[str, Any]:
    """Any of the rows may be missing; of the four lists at most two can't be read, as they would close everything."""
    modules, names = (*KEYS, "gone"), (*(tool.name for tool in tools), "alpha.gone", "beta")
    few, many = (
        st.lists(st.sampled_from(modules), max_size=2),
        st.lists(st.sampled_from(modules), min_size=3, max_size=8),
    )
    flags = st.one_of(st.booleans(), st.sampled_from(_UNREADABLE_FLAGS))
    rows = draw(
        st.fixed_dictionaries(
            {"api_session_write_modules": many},
            optional={
                "disabled_modules": few,
                "api_disabled_modules": few,
                "api_disabled_tools": st.lists(st.sampled_from(names), max_size=3),
                "api_admin_enabled": flags,
                "maintenance_mode": flags,
            },
        )
    )
    broken = draw(st.sampled_from(_BROKEN))
    rows.update({name: draw(_unreadable(names if name == "api_disabled_tools" else modules)) for name in broken})
    if draw(st.sampled_from(range(12))) == 11:
        # Without it there is no write to look at.
        del rows["api_session_write_modules"]
    return rows


# Neither nothing nor everything, most of the time: that is where the rules differ.
_SOME = st.sampled_from([frozenset(names) for size in (0, 1, 1, 2, 2, 3) for names in combinations(PERMISSIONS, size)])


@st.composite
def _rights(draw: st.DrawFn) -> Rights:
    roles = tuple(draw(st.lists(_SOME, max_size=2, unique=True)))
    return Rights(
        roles=roles,
        own=draw(_SOME) if draw(st.sampled_from([False, False, True])) or not roles else frozenset(),
        is_owner=draw(st.sampled_from([False] * 7 + [True])),
        acts_as=draw(st.sampled_from([None, *range(len(roles))])),
    )


_TOOL = st.tuples(
    st.sampled_from(KEYS),
    st.sampled_from(["stock:run"] * 12 + ["price:run"] * 4 + [None]),
    st.sampled_from([*PERMISSIONS * 7, None, NOBODYS]),
    st.one_of(st.sampled_from(_READ), st.sampled_from(_WRITE)),
    st.sampled_from(["admin"] * 11 + ["public"]),
    st.sampled_from([""] * 12 + ["name", "alias"]),
)


@st.composite
def _tools(draw: st.DrawFn) -> tuple[Declared, ...]:
    """In the order in which the gate meets them: module by module."""
    found: list[Declared] = []
    rows = draw(st.lists(_TOOL, min_size=3, max_size=4))
    for number, (module, scope, permission, hint, audience, twin) in enumerate(sorted(rows, key=lambda row: row[0])):
        name = f"{module}.tool{number}"
        if twin and found:
            name = found[-1].name if twin == "name" else found[-1].alias
        tool = Declared(module=module, name=name, scope=scope, permission=permission, hint=hint, audience=audience)
        found.append(tool if audience == "admin" else replace(tool, scope=None, permission=None))
    return tuple(found)


@st.composite
def worlds(draw: st.DrawFn) -> World:
    tools = draw(_tools())
    moment = st.builds(Moment, rows=_rows(tools), rights=_rights())
    return World(tools=tools, moments=draw(st.tuples(*[moment] * MOMENTS)))


Ran = Callable[[str, Declared], None]


def modules_of(world: World, ran: Ran) -> list[Module]:
    """The world's modules. Whatever of theirs runs says so: `ran("handler" or "preview", tool)`."""
    made = {key: Module(key=key, name=name) for key, name in MODULES.items()}
    for number, tool in enumerate(world.tools):
        _declare(made[tool.module], tool, number, ran)
    return list(made.values())


def _declare(module: Module, tool: Declared, number: int, ran: Ran) -> None:
    def handle(given: Any, ctx: Any) -> dict[str, Any]:
        ran("handler", tool)
        return {"tool": number}

    def show(given: Any, ctx: Any) -> Any:
        ran("preview", tool)
        return preview("Something."), "fixed"

    hints: Any = {} if tool.hint is None else {"read_only": tool.hint}
    dangers: tuple[Any, ...] = (None, "always", lambda given, ctx: False)
    made = module.tool(
        tool.name,
        audience=tool.audience,  # type: ignore[arg-type]  # one of the two
        scope=tool.scope,
        permission=tool.permission,
        annotations=hints,
        danger=dangers[number % 3] if tool.is_write else None,
        input_schema={"type": "object", "properties": {}},
    )(handle)
    if tool.is_write:
        made.preview(show)
