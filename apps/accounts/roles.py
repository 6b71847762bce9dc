"""Acting as one role (PS-4): chosen per session, narrowing its scope; a role that is lost ends the sessions that act as it.

Whoever chooses locks the group, then the membership, then the session, and whoever takes a role away locks in the same
order. So a lost role finds every session that acts as it, and no session begins to act as a role while that goes.
"""

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Exists, OuterRef, Subquery
from django.db.models.signals import m2m_changed, pre_delete
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone

from apps.accounts import sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import SessionRef
from apps.activity import actions, log
from apps.api import credentials, switches
from apps.api.models import Setting

SETTING = "accounts_act_as_role"
MEMBERSHIP: Any = User.groups.through


class Refused(Exception):
    """The role can't be chosen."""


class SwitchedOff(Refused):
    """The setting is off: only the way back to all roles is open."""


class NotHeld(Refused):
    """No role of this person, or no role at all."""


class SessionGone(Refused):
    """The session is over, somebody else's, or an impersonator's."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """What the header offers: the person's roles by name, and the one that the session acts as, None for all."""

    roles: tuple[Group, ...]
    acting: Group | None


def choose(ref: SessionRef, role: int | None, *, now: datetime, request: HttpRequest | None = None) -> Group | None:
    """The session acts as this role from now on, with None as all of them. Nothing changes when it does so already.

    Raises Refused. While the setting is off, only None is a choice.
    """
    if role is not None and not switches.parse(credentials.read(None).settings).accounts_act_as_role:
        raise SwitchedOff
    with transaction.atomic():
        held = None if role is None else _held(ref, role)
        rows = LiveSession.objects.filter(pk=ref.session_uuid, user=ref.user_uuid, impersonator=None)
        rows = rows.filter(ended_at=None, expires_at__gt=now)
        # Its old role is read after the lock: joined, it would be the one from before the wait.
        session = rows.select_for_update(of=("self",)).select_related("user").first()
        if session is None:
            raise SessionGone
        if rows.exclude(acting_role=held).update(acting_role=held):
            _record(session, held, request)
    return held


def choice(person: User) -> Choice | None:
    """What the header offers in this session of the person, with one query; None when there is nothing to choose."""
    session = person.live_session
    if session is None or session.impersonator_id is not None:
        return None
    switch = Setting.objects.filter(name=SETTING).values("value")[:1]
    roles = tuple(Group.objects.filter(user=person).annotate(switch=Subquery(switch)).order_by("name", "pk"))
    is_on = any(_is_on(role.switch) for role in roles[:1])
    # Being the owner is a role of its own.
    several = len(roles) + person.is_superuser > 1
    if session.acting_role is None and not (is_on and several):
        return None
    # Whatever the setting says, the role that is chosen is shown, and leads back.
    offered = tuple(role for role in roles if is_on or role == session.acting_role)
    return Choice(roles=offered, acting=session.acting_role)


def delete(role: Group, *, by: log.Actor, request: HttpRequest | None = None) -> None:
    """Deletes the role and ends the sessions that act as it, in the name of the one who deletes it."""
    with transaction.atomic():
        _forget(role, by=by, request=request)
        role.delete()


def _held(ref: SessionRef, role: int) -> Group:
    """The role, when this person holds it; both rows stay locked, so that it can't be taken away meanwhile."""
    group = Group.objects.select_for_update(no_key=True).filter(pk=role).first()
    if group is None:
        raise NotHeld
    member = MEMBERSHIP.objects.select_for_update(no_key=True).filter(user=ref.user_uuid, group=role).first()
    if member is None:
        raise NotHeld
    return group


def _is_on(value: Any) -> bool:
    rows = {} if value is None else {SETTING: value}
    return switches.parse(json.dumps(rows)).accounts_act_as_role


def _record(session: LiveSession, role: Group | None, request: HttpRequest | None) -> None:
    old = session.acting_role
    sessions.record(
        actions.SESSION_ROLE_CHOSEN,
        session,
        by=sessions.actor(session.user),
        request=request,
        old=old.name if old else None,
        new=role.name if role else None,
    )


def _forget(role: Group, *, by: log.Actor, request: HttpRequest | None = None) -> None:
    """Ends what acts as a role that is about to go, and takes the role off what has ended. The lock keeps it out of reach."""
    Group.objects.select_for_update().filter(pk=role.pk).first()
    acting = LiveSession.objects.filter(acting_role=role)
    sessions.end(acting, reason=sessions.Reason.ROLE_REMOVED, by=by, now=timezone.now(), request=request)
    acting.exclude(ended_at=None).update(acting_role=None)


@receiver(pre_delete, sender=Group)
def _before_a_role_goes(*, instance: Group, **_: Any) -> None:
    _forget(instance, by=sessions.SYSTEM)


@receiver(m2m_changed, sender=MEMBERSHIP)
def _after_roles_changed(*, instance: User | Group, action: str, pk_set: set[Any] | None, **_: Any) -> None:
    """Whichever side was changed: ends those of its sessions that act as a role which their person lost."""
    if action not in ("post_remove", "post_clear"):
        return
    sessions.ask_again([instance.pk] if isinstance(instance, User) else pk_set or ())
    if isinstance(instance, User):
        rows, (by, request) = LiveSession.objects.filter(user=instance), sessions.changer(instance)
    else:
        rows, by, request = LiveSession.objects.filter(acting_role=instance), sessions.SYSTEM, None
    held = MEMBERSHIP.objects.filter(user_id=OuterRef("user_id"), group_id=OuterRef("acting_role_id"))
    lost = rows.exclude(acting_role=None).exclude(Exists(held))
    sessions.end(lost, reason=sessions.Reason.ROLE_REMOVED, by=by, now=timezone.now(), request=request)


@receiver(m2m_changed, sender=User.user_permissions.through)
def _after_rights_changed(*, instance: Any, action: str, pk_set: set[Any] | None, **_: Any) -> None:
    if action in ("post_remove", "post_clear"):
        sessions.ask_again([instance.pk] if isinstance(instance, User) else pk_set or ())
