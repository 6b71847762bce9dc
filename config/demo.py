"""The demo (SPEC 26): a shop, three people with roles, three keys and two example chats, for whoever tries the program for the first time.

Passwords and keys are in the report and nowhere else.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict

from django.contrib.auth.models import Group, Permission
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts import passwords
from apps.accounts.models import OWNERS_REFERRAL, User
from apps.activity import log
from apps.api import keys, settings_store
from apps.api.models import ApiKey
from apps.catalogue import demo as shop
from config import demo_chats

ACTOR = log.Actor(kind="system", name="demo")

READ, WRITE = "catalogue:read", "catalogue:write"
GRANTS = {
    "reader": keys.Grant(name="Demo reader", scopes=[READ]),
    "writer": keys.Grant(name="Demo writer", scopes=[READ, WRITE]),
    "approval": keys.Grant(name="Demo writer with approval", scopes=[READ, WRITE], requires_approval=True),
}

SETTINGS = {
    "api_public_enabled": True,
    "api_session_write_modules": settings_store.Toggles(added=frozenset({"catalogue"})),
}

# Easy to read aloud and to type: nothing that looks like something else.
_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"


class Login(TypedDict):
    email: str
    password: str


class Report(TypedDict):
    """What `seed_demo --json` prints."""

    people: dict[str, Login]
    keys: dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Role:
    """A group and the permissions that it gives: those of them that exist."""

    group: str
    permissions: Q


def _permission(label: str) -> Q:
    app, _, codename = label.partition(".")
    return Q(content_type__app_label=app, codename=codename)


PEOPLE: dict[str, Role | None] = {
    "operator": None,  # the superuser
    "approver": Role(
        group="Approvers", permissions=Q(content_type__app_label="catalogue") | _permission("api.decide_approval")
    ),
    "member": Role(
        group="Staff",
        # Adding and deleting too: whoever lacks the permission of one tool holds nothing of its scope (PS-5).
        permissions=_permission("catalogue.view_product")
        | _permission("catalogue.change_product")
        | _permission("catalogue.add_product")
        | _permission("catalogue.delete_product")
        | _permission("agent.use_assistant"),
    ),
}


def fill_when_empty() -> Report | None:
    """The demo for a database without a single person; None for any other one, which stays as it is."""
    return None if User.objects.exists() else fill()


def fill() -> Report:
    """`renew`, and the member's example chats where there are none. Not in one transaction: a turn has its own."""
    report = renew()
    demo_chats.fill(report["people"]["member"]["email"])
    return report


@transaction.atomic
def renew() -> Report:
    """Make what is missing, and new passwords and keys; the demo's old keys end. Products are left as they are."""
    shop.fill()
    settings_store.save(SETTINGS, seen=settings_store.rows(), actor=ACTOR)
    people = {name: _person(name, role) for name, role in PEOPLE.items()}
    operator = User.objects.get(email=people["operator"]["email"])
    return Report(people=people, keys=_keys(operator))


def _person(name: str, role: Role | None) -> Login:
    login = Login(email=f"{name}@example.org", password=_password())
    person = User.objects.filter(email=login["email"]).first()
    if person is None:
        person = _new_person(name, login, owner=role is None)
    else:
        passwords.change(person, login["password"], keep=None)
    if role is not None:
        person.groups.add(_group(role))
    return login


def _new_person(name: str, login: Login, *, owner: bool) -> User:
    return User.objects.create_user(
        login["email"],
        login["password"],
        name=name.capitalize(),
        email_confirmed_at=timezone.now(),
        referral_code=OWNERS_REFERRAL if owner else "",
        is_staff=owner,
        is_superuser=owner,
    )


def _group(role: Role) -> Group:
    group, _ = Group.objects.get_or_create(name=role.group)
    group.permissions.add(*Permission.objects.filter(role.permissions))
    return group


def _keys(operator: User) -> dict[str, str]:
    _revoke(ApiKey.objects.filter(owner=operator, revoked_at=None, name__in=[grant.name for grant in GRANTS.values()]))
    return {
        name: keys.create(grant, owner=operator, created_by=operator, actor=ACTOR)[1] for name, grant in GRANTS.items()
    }


def _revoke(old: Iterable[ApiKey]) -> None:
    for key in old:
        keys.revoke(key, by=None, actor=ACTOR)


def _password() -> str:
    """Four groups of four, about 79 bits."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(4)) for _ in range(4))
