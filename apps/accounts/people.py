"""The people of this project as the gate meets them (`settings.API_PEOPLE`): facts by SQL or by the ORM, and a scope.

The SQL runs inside the statement that verifies a key, at every call of the API. The table and column names are the
models' own; a test holds it to what Django's permission backend says.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, cast
from uuid import UUID

from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.base import SessionBase
from django.db import connection, models
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts import gates, impersonation, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.api.people import Refused, Scope, Session
from apps.api.switches import Switches

# Per vendor: an object from name/value pairs, and a list from the rows of a subquery.
_JSON = {
    "postgresql": ("json_build_object", "SELECT json_agg({value}) FROM"),
    "sqlite": ("json_object", "SELECT json_group_array({value}) FROM"),
}


@cache
def owner_sql(vendor: str, owner: str) -> str | None:
    """A scalar subquery: the facts of the person whose pk is the expression `owner`, as JSON; NULL without one.

    None for another database: `owner_scope` then reads the facts itself.
    """
    if vendor not in _JSON:
        return None
    to_object, to_list = _JSON[vendor]
    permissions = f"({to_list.format(value=_label())} {_granted()})"
    if vendor == "sqlite":
        permissions = f"json({permissions})"  # a subquery's result is text again, and would be quoted
    facts = ", ".join(
        [
            f"'email', person.{_column(User, 'email')}",
            f"'name', person.{_column(User, 'name')}",
            f"'is_active', person.{_column(User, 'is_active')}",
            f"'is_staff', person.{_column(User, 'is_staff')}",
            f"'is_superuser', person.{_column(User, 'is_superuser')}",
            f"'email_confirmed', person.{_column(User, 'email_confirmed_at')} IS NOT NULL",
            f"'referral_given', person.{_column(User, 'referral_code')} <> ''",
            f"'permissions', CASE WHEN person.{_column(User, 'is_superuser')} THEN NULL ELSE {permissions} END",
        ]
    )
    return f"(SELECT {to_object}({facts}) FROM {_table(User)} person WHERE person.{_column(User, 'id')} = {owner})"  # noqa: S608


def owner_scope(owner_id: object, facts: Mapping[str, Any] | None, switches: Switches) -> Scope | None:
    """The owner's full scope, or None when a gate is shut. Without facts they are read here."""
    facts = _facts(owner_id) if facts is None else facts
    if facts is None or _gate(facts, switches):
        return None
    return _scope(owner_id, facts)


def session(ref: object, switches: Switches) -> Session | Refused:
    """What the session may do now (PS-3), with one query, and another one for the rights of the role that it acts as."""
    row = _live_row(ref)
    if row is None:
        return "session_gone"
    if row.user_id != cast(SessionRef, ref).user_uuid:
        return "mismatch"
    facts = _facts(row.user_id) if row.facts is None else row.facts
    if facts is None:
        return "session_gone"
    if refusal := _gate(facts, switches):
        return refusal.value
    if row.impersonator_id is not None and not _may_go_on(row.impersonator_id, facts):
        return "session_gone"
    scope = _scope(row.user_id, facts)
    if row.acting_role_id is not None:
        # Rights given to the person directly belong to no role, and being the owner is a role of its own.
        scope = replace(scope, is_superuser=False, permissions=_role_permissions(row.acting_role_id))
    return Session(scope=scope, is_impersonated=row.impersonator_id is not None)


def reference(request: HttpRequest) -> SessionRef | None:
    """The live session of the request."""
    return sessions.reference(request)


def reference_in(browser_session: SessionBase) -> SessionRef | None:
    """The live session that a browser session carries."""
    return sessions.reference_in(browser_session)


def is_impersonated(request: HttpRequest) -> bool:
    """Whether somebody looks at the site as the person of this request."""
    return impersonation.impersonator(request) is not None


def acts_as_role(request: HttpRequest) -> bool:
    """Whether the session of this request acts as one of the person's roles."""
    session = request.user.live_session if isinstance(request.user, User) else None
    return session is not None and session.acting_role_id is not None


def holds(request: HttpRequest) -> bool:
    """Whether the session of this request is still as it was when the request began; in a transaction it stays so to its end."""
    session = request.user.live_session if isinstance(request.user, User) else None
    if session is None:
        return False
    rows = LiveSession.objects.filter(
        pk=session.pk,
        acting_role=session.acting_role_id,
        impersonator=session.impersonator_id,
        ended_at=None,
        expires_at__gt=timezone.now(),
    )
    return rows.select_for_update(no_key=True).first() is not None


@dataclass(frozen=True, kw_only=True)
class _LiveRow:
    user_id: UUID
    acting_role_id: int | None
    impersonator_id: UUID | None
    facts: Mapping[str, Any] | None


def _live_row(ref: object) -> _LiveRow | None:
    """The open row with its person's facts. A session that acts as a role which the person has lost is none."""
    if not isinstance(ref, SessionRef) or not isinstance(ref.session_uuid, UUID) or not isinstance(ref.user_uuid, UUID):
        return None
    key = LiveSession._meta.pk.get_db_prep_value(ref.session_uuid, connection)
    now = connection.ops.adapt_datetimefield_value(timezone.now())
    with connection.cursor() as cursor:
        cursor.execute(_session_sql(connection.vendor), [key, now])
        found = cursor.fetchone()
    if found is None:
        return None
    user, role, impersonator, facts = found
    return _LiveRow(
        user_id=_uuid(user),
        acting_role_id=role,
        impersonator_id=None if impersonator is None else _uuid(impersonator),
        facts=None if facts is None else json.loads(facts),
    )


@cache
def _session_sql(vendor: str) -> str:
    """Written once: the ORM takes three milliseconds to compile it, on every call of a session."""
    names = ("user", "acting_role", "impersonator", "ended_at", "expires_at")
    user, role, impersonator, ended, expires = (f"session.{_column(LiveSession, name)}" for name in names)
    member = User.groups.through
    facts = owner_sql(vendor, user)
    return (
        f"SELECT {user}, {role}, {impersonator}, {'NULL' if facts is None else f'CAST({facts} AS text)'}"  # noqa: S608 - names of the models only
        f" FROM {_table(LiveSession)} session"
        f" WHERE session.{_column(LiveSession, 'id')} = %s AND {ended} IS NULL AND {expires} > %s"
        f" AND ({role} IS NULL OR EXISTS (SELECT 1 FROM {_table(member)} member"
        f" WHERE member.{_column(member, 'user')} = {user} AND member.{_column(member, 'group')} = {role}))"
    )


def _uuid(value: Any) -> UUID:
    """SQLite keeps it as a text."""
    return value if isinstance(value, UUID) else UUID(value)


def _may_go_on(impersonator: UUID, facts: Mapping[str, Any]) -> bool:
    person = User.objects.filter(pk=impersonator).first()
    return person is not None and impersonation.may_go_on(
        person,
        is_staff=bool(facts["is_staff"]),
        is_superuser=bool(facts["is_superuser"]),
        permissions=facts["permissions"] or (),
    )


def _role_permissions(role: int) -> frozenset[str]:
    granted = Permission.objects.filter(group=role).values_list("content_type__app_label", "codename").order_by("pk")
    return frozenset(f"{app}.{codename}" for app, codename in granted)


def _gate(facts: Mapping[str, Any], switches: Switches) -> gates.Refusal | None:
    standing = gates.Standing(
        is_active=bool(facts["is_active"]),
        email_confirmed=bool(facts["email_confirmed"]),
        referral_given=bool(facts["referral_given"]),
    )
    return gates.refusal(
        standing, email_required=switches.accounts_email_required, referral_required=switches.accounts_referral_required
    )


def _scope(person_id: object, facts: Mapping[str, Any]) -> Scope:
    return Scope(
        person_id=str(User._meta.pk.to_python(person_id)),
        name=facts["name"] or facts["email"],
        is_superuser=bool(facts["is_superuser"]),
        permissions=frozenset(facts["permissions"] or ()),
    )


def _facts(owner_id: Any) -> dict[str, Any] | None:
    user = User.objects.filter(pk=owner_id).first()
    if user is None:
        return None
    return {
        "email": user.email,
        "name": user.name,
        "is_active": user.is_active,
        "is_staff": user.is_staff,
        "is_superuser": user.is_superuser,
        "email_confirmed": user.email_confirmed_at is not None,
        "referral_given": user.referral_code != "",
        "permissions": None if user.is_superuser else user.get_all_permissions(),
    }


def _label() -> str:
    return f"kind.{_column(ContentType, 'app_label')} || '.' || permission.{_column(Permission, 'codename')}"


def _granted() -> str:
    """The rows `permission` and `kind` of what the row `person` holds by itself and by its groups, each once."""
    own, member, role = User.user_permissions.through, User.groups.through, Group.permissions.through
    return (
        f"{_table(Permission)} permission JOIN {_table(ContentType)} kind"  # noqa: S608 - names of the models only
        f" ON kind.{_column(ContentType, 'id')} = permission.{_column(Permission, 'content_type')}"
        f" WHERE permission.{_column(Permission, 'id')} IN ("
        f"SELECT own.{_column(own, 'permission')} FROM {_table(own)} own"
        f" WHERE own.{_column(own, 'user')} = person.{_column(User, 'id')}"
        f" UNION ALL SELECT role.{_column(role, 'permission')} FROM {_table(member)} member JOIN {_table(role)} role"
        f" ON role.{_column(role, 'group')} = member.{_column(member, 'group')}"
        f" WHERE member.{_column(member, 'user')} = person.{_column(User, 'id')})"
    )


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(model: type[models.Model], field: str) -> str:
    column: Any = model._meta.get_field(field)
    return connection.ops.quote_name(column.column)
