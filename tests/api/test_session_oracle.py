"""LS-5's promise over random worlds: what is available, what is listed, what is let through and what the specification says are one set.

2,000 cases, always the same ones. With `SESSION_ORACLE_CASES=100000` in the environment it is that many, other ones each time.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from itertools import chain, combinations, count
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Count, JSONField, Value
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given, seed, settings

from apps.accounts.models import LiveSession, User
from apps.activity.models import Entry
from apps.api import credentials, executor, people, ratelimit, registry, switches
from apps.api.availability import Availability, Closed
from apps.api.call import Answer, Outcome
from apps.api.models import Confirmation, Setting
from apps.api.people import Session
from apps.api.ratelimit import Bucket
from tests.accounts.factories import make_group, make_permissions
from tests.api.person import Person
from tests.api.session_oracle import Declared, Oracle
from tests.api.session_worlds import MODULES, MOMENTS, PERMISSIONS, Moment, World, modules_of, worlds

SHARDS = 4  # so that workers share them
ASKED = int(os.environ.get("SESSION_ORACLE_CASES", "0"))
CASES = max(2_000, ASKED) // SHARDS
BUDGET = 1_000_000
LISTS = ("disabled_modules", "api_disabled_modules", "api_disabled_tools", "api_session_write_modules")
# What the cases must have met, each of them often enough, or they would show little.
REASONS = ("module_disabled", "api_off", "tool_hidden", "agent_writes_off", "no_permission")
REACHED = (*REASONS, *LISTS, "PS-4", "PS-5", "ran, all", "held, all", "forbidden, read")
# Names that no session may call, by the moment of a world.
STRANGE: tuple[set[str], ...] = ({"system.whoami"}, set(), {"alpha.gone"}, set())

_numbers = count(1)


@dataclass(kw_only=True)
class Stage:
    """The roles, one for each set of permissions, made once; people and settings of a world."""

    roles: dict[frozenset[str], Group]
    permissions: dict[str, Permission]

    @transaction.atomic
    def enter(self, moments: tuple[Moment, ...]) -> list[Person]:
        """A new person in a session of theirs for each moment: nobody has paid or held anything yet."""
        users = User.objects.bulk_create([_user(moment) for moment in moments])
        pairs = list(zip(users, moments, strict=True))
        User.groups.through.objects.bulk_create(
            User.groups.through(user=user, group=self.roles[role])
            for user, moment in pairs
            for role in moment.rights.roles
        )
        User.user_permissions.through.objects.bulk_create(
            User.user_permissions.through(user=user, permission=self.permissions[name])
            for user, moment in pairs
            for name in moment.rights.own
        )
        sessions = LiveSession.objects.bulk_create([self._session(user, moment) for user, moment in pairs])
        return [Person(user=user, session=session) for user, session in zip(users, sessions, strict=True)]

    def _session(self, user: User, moment: Moment) -> LiveSession:
        rights = moment.rights
        role = None if rights.acts_as is None else self.roles[rights.roles[rights.acts_as]]
        return LiveSession(user=user, acting_role=role, expires_at=timezone.now() + timedelta(hours=1))

    def switch(self, rows: dict[str, Any]) -> None:
        Setting.objects.all().delete()
        null: Any = Value(None, JSONField())
        Setting.objects.bulk_create(
            Setting(name=name, value=null if value is None else value)
            for name, value in {**rows, "api_person_budget": BUDGET}.items()
        )


def _user(moment: Moment) -> User:
    return User(email=f"oracle{next(_numbers)}@example.org", password="!", is_superuser=moment.rights.is_owner)


@pytest.fixture
def stage(transactional_db: None, settings: Any) -> Stage:
    # Each unit is counted here, and a Redis that takes longer than 50 ms once would be left out for a while.
    settings.REDIS_URL, settings.EMBEDDED = "", True
    subsets = chain.from_iterable(combinations(PERMISSIONS, size) for size in range(len(PERMISSIONS) + 1))
    return Stage(
        roles={frozenset(names): make_group(permissions=names) for names in subsets},
        permissions=dict(zip(PERMISSIONS, make_permissions(PERMISSIONS), strict=True)),
    )


@dataclass(kw_only=True)
class Case:
    """One moment of a world, looked at from every side. `strange` are more names to call."""

    oracle: Oracle
    person: Person
    ran: list[tuple[str, Declared]]
    strange: set[str]
    seen: Counter[str]
    calls: int = 0
    held: int = 0

    def check(self) -> None:
        self._check_availability()
        self._check_listings()
        self._check_calls()

    def _check_availability(self) -> None:
        """The reasons without and with the session's scope, in the order of LS-5."""
        now = switches.parse(credentials.read(None).settings)
        assert _shown(executor.tool_availability(None, now=now)) == self._expected(self.oracle.closed_by_settings)
        session = people.current().session(self.person.ref, now)
        assert isinstance(session, Session)
        found = executor.tool_availability(session.scope)
        assert _shown(found) == self._expected(self.oracle.closed)
        assert {row.name for row in found if row.status == "available"} == self.oracle.available(allow="all")

    def _expected(self, closed: Callable[[Declared], tuple[str, ...]]) -> list[tuple[str, ...]]:
        tools = sorted(self.oracle.listed(), key=lambda tool: (MODULES[tool.module], tool.name))
        return [(tool.module, tool.name, "write" if tool.is_write else "read", *closed(tool)) for tool in tools]

    def _check_listings(self) -> None:
        for allow in ("all", "read"):
            self.calls += 1
            assert self.person.tools(allow=allow) == sorted(self.oracle.available(allow=allow))

    def _check_calls(self) -> None:
        """Every declared name with all rights, and what they open with a look alone."""
        for name in sorted(self.strange | {tool.name for tool in self.oracle.tools}):
            self._check_call(name, allow="all")
        for tool in self.oracle.listed():
            if not self.oracle.closed(tool):
                self._check_call(tool.name, allow="read")

    def _check_call(self, name: str, *, allow: str) -> None:
        self.ran.clear()
        self.calls += 1
        said = _said(self.person.call(name, allow=allow))
        assert said == self.oracle.answer(name, allow=allow), (name, allow)
        served = {tool.name: tool for tool in self.oracle.listed()}
        assert [what for what, _ in self.ran] == _RUNS.get(said, [])
        assert all(tool is served[name] for _, tool in self.ran)
        self.held += said == "held"
        self.seen[f"{said}, {allow}"] += 1


def _check_ledger(cases: list[Case]) -> None:
    """What was held and written, and one unit for each call and listing: availability adds nothing to it."""
    people = [str(case.person.user.pk) for case in cases]
    callers = [f"person:{person}" for person in people]
    held = Confirmation.objects.filter(caller__in=callers).order_by()
    rows = dict(held.values_list("caller").annotate(Count("pk")))
    written = Entry.objects.filter(actor_uuid__in=people).order_by()
    entries = dict(written.values_list("actor_uuid").annotate(Count("pk")))
    levels = ratelimit.levels([Bucket(policy="person", name=caller, budget=BUDGET) for caller in callers])
    for case, person, caller, level in zip(cases, people, callers, levels, strict=True):
        left = (rows.get(caller, 0), entries.get(person, 0), BUDGET - level.remaining)
        assert left == (case.held, case.held, case.calls)


# What runs of a tool, by what its call was answered: of a held one the preview, and of a refused one nothing.
_RUNS = {"ran": ["handler"], "held": ["preview"]}


def _shown(rows: list[Availability]) -> list[tuple[str, ...]]:
    return [
        (row.module_key, row.name, row.kind, *(row.status.reasons if isinstance(row.status, Closed) else ()))
        for row in rows
    ]


def _said(outcome: Outcome) -> str:
    """`ran`, `held`, or the code of the refusal."""
    if not isinstance(outcome, Answer):
        return outcome.problem.code
    return "held" if outcome.result.get("status") == "confirmation_required" else "ran"


def _decisive(oracle: Oracle) -> Iterator[str]:
    """The rules that decide something here, and the lists that can't be read."""
    available = oracle.available(allow="all")
    as_nobody = replace(oracle, rights=replace(oracle.rights, acts_as=None))
    if as_nobody.available(allow="all") != available:
        yield "PS-4"
    for tool in oracle.listed():
        yield from oracle.closed(tool)
        if oracle.closed(tool) == ("no_permission",) and oracle.rights.hold(tool.permission) and tool.scope:
            yield "PS-5"
    yield from (name for name in LISTS if not oracle.is_readable(name))


def _play(stage: Stage, world: World, seen: Counter[str]) -> None:
    ran: list[tuple[str, Declared]] = []
    cases: list[Case] = []
    with registry.using(*modules_of(world, lambda what, tool: ran.append((what, tool)))):
        for moment, person, strange in zip(world.moments, stage.enter(world.moments), STRANGE, strict=True):
            stage.switch(moment.rows)
            oracle = Oracle(tools=world.tools, rows=moment.rows, rights=moment.rights)
            cases.append(Case(oracle=oracle, person=person, ran=ran, strange=strange, seen=seen))
            cases[-1].check()
            seen.update(["cases", *set(_decisive(oracle))])
    _check_ledger(cases)


def _always_the_same(shard: int) -> Callable[[Any], Any]:
    """Unless a longer look was asked for."""
    rules = settings(
        max_examples=CASES // MOMENTS,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    return rules if ASKED else lambda test: seed(shard)(rules(test))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_what_is_available_is_listed_and_let_through_and_nothing_else(stage: Stage, shard: int) -> None:
    seen: Counter[str] = Counter()

    @_always_the_same(shard)
    @given(world=worlds())
    def agree(world: World) -> None:
        _play(stage, world, seen)

    agree()
    assert seen["cases"] >= CASES
    assert {rule: seen[rule] for rule in REACHED if seen[rule] < CASES // 250} == {}
