"""The facts that the gate reads by SQL are those that Django's permission backend would give."""

import json
import random
from dataclasses import dataclass
from typing import Any, cast
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.utils import timezone

from apps.accounts import people
from apps.accounts.models import User
from apps.api.people import Scope
from apps.api.switches import Switches
from tests.accounts.factories import make_group, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


@dataclass(frozen=True)
class _Required:
    accounts_email_required: bool = False
    accounts_referral_required: bool = False


def _switches(*, email: bool = False, referral: bool = False) -> Switches:
    return cast(Switches, _Required(email, referral))


def _facts(user: User) -> dict[str, Any]:
    """As the gate asks: inside another statement, for the person whom a column of that names."""
    sql = people.owner_sql(connection.vendor, "asked.id")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {sql} FROM accounts_user asked WHERE asked.email = %s", [user.email])
        (found,) = cursor.fetchone()
    return cast(dict[str, Any], json.loads(found) if isinstance(found, str) else found)


def _scope(user: User) -> Scope | None:
    return people.owner_scope(user.pk, _facts(user), _switches())


def _random_users(chance: random.Random) -> list[User]:
    everything = list(Permission.objects.order_by("pk"))
    roles = [make_group() for _ in range(6)]
    for role in roles:
        role.permissions.set(chance.sample(everything, chance.randrange(8)))
    users = [make_user() for _ in range(20)]
    for user in users:
        user.groups.set(chance.sample(roles, chance.randrange(4)))
        user.user_permissions.set(chance.sample(everything, chance.randrange(4)))
    return users


@pytest.mark.parametrize("seed", range(5))
def test_sql_and_orm_agree_with_django_on_the_permissions_of_random_people(seed: int) -> None:
    for user in _random_users(random.Random(seed)):
        expected = Scope(person_id=str(user.pk), name=user.email, permissions=frozenset(user.get_all_permissions()))
        assert _scope(user) == expected
        assert people.owner_scope(user.pk, None, _switches()) == expected


def test_an_owner_may_everything_and_no_permission_is_read_for_them() -> None:
    owner = make_owner(groups=[make_group(permissions=["accounts.view_user"])])
    scope = _scope(owner)
    assert scope is not None
    assert _facts(owner)["permissions"] is None
    assert (scope.is_superuser, scope.permissions, scope.can("accounts.view_user")) == (True, frozenset(), True)


def test_a_person_is_named_by_name_or_by_address() -> None:
    assert people.owner_scope(
        (user := make_user(name='A "quoted" Ünïcode \\ name')).pk, _facts(user), _switches()
    ) == Scope(person_id=str(user.pk), name=user.name)


@pytest.mark.parametrize("by_sql", [True, False])
@pytest.mark.parametrize(
    ("fields", "switches"),
    [
        ({"is_active": False}, _switches()),
        ({"is_active": False, "is_superuser": True}, _switches()),
        ({"referral_code": "R1"}, _switches(email=True)),
        ({"email_confirmed_at": timezone.now()}, _switches(referral=True)),
    ],
)
def test_a_shut_gate_gives_no_scope(fields: dict[str, Any], switches: Switches, by_sql: bool) -> None:
    user = make_user(**fields)
    assert people.owner_scope(user.pk, _facts(user) if by_sql else None, switches) is None


@pytest.mark.parametrize("by_sql", [True, False])
def test_open_gates_give_one(by_sql: bool) -> None:
    user = make_user(email_confirmed_at=timezone.now(), referral_code="R1")
    assert people.owner_scope(user.pk, _facts(user) if by_sql else None, _switches(email=True, referral=True))


def test_the_id_may_come_as_the_database_keeps_it() -> None:
    user = make_user()
    scope = people.owner_scope(user.pk.hex, _facts(user), _switches())
    assert scope is not None
    assert scope.person_id == str(user.pk)


def test_nobody_has_no_scope() -> None:
    assert people.owner_scope(uuid4(), None, _switches()) is None


def test_another_database_leaves_the_facts_to_the_orm() -> None:
    assert people.owner_sql("oracle", "asked.id") is None
