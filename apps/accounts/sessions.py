"""Live sessions (PS-2): made at every sign-in, ended by one conditional update each, with one entry for each change.

The signed browser session carries the row's id and nothing else does: no form, URL, frame or task may name one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.signals import user_logged_in, user_logged_out
from django.contrib.sessions.backends.base import SessionBase
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from django.utils.crypto import constant_time_compare
from django.utils.translation import gettext

from apps.accounts import address
from apps.accounts.models import LiveSession, User
from apps.activity import actions, log
from apps.api import session_news

LIFETIME = timedelta(seconds=settings.SESSION_COOKIE_AGE)
CARRIED_AS = "live_session"

Reason = LiveSession.EndReason
SYSTEM = log.Actor(kind="system")


@dataclass(frozen=True)
class SessionRef:
    """Which session asks, and whose it is. Not a secret, but only the server may say it: see `reference`."""

    session_uuid: UUID
    user_uuid: UUID


def actor(user: User) -> log.Actor:
    """The person as entries name them."""
    return log.Actor(kind="user", uuid=str(user.pk), name=user.get_full_name())


def acting(user: User) -> log.Actor:
    """Who really sits there: the impersonator, when somebody looks at the site as the person."""
    impersonator = None if user.live_session is None else user.live_session.impersonator
    return actor(impersonator or user)


def changer(user: User) -> tuple[log.Actor, HttpRequest | None]:
    """Who changes this person now, and in which request, for what follows from it."""
    return (SYSTEM if user.changed_by is None else actor(user.changed_by)), user.changed_in


@transaction.atomic
def start(request: HttpRequest, user: User, *, now: datetime) -> LiveSession:
    """A new row that the browser session of this request carries from now on; the one that it carried before ends.

    Raises PermissionDenied when the password was changed or the person blocked since they were let in: what ended all their sessions did
    not see this one.
    """
    _must_be_as_checked(user)
    by = actor(user.changed_by or user)
    replaced = carried(request)
    if replaced is not None:
        rows = LiveSession.objects.filter(pk=replaced.session_uuid)
        end(rows, reason=Reason.SIGNED_OUT, by=by, now=now, request=request)
    expire(LiveSession.objects.filter(user=user), now=now)
    session = LiveSession.objects.create(
        user=user,
        created_at=now,
        expires_at=now + LIFETIME,
        ip=address.of(request),
        user_agent=request.META.get("HTTP_USER_AGENT", "").replace("\x00", "")[:300],
    )
    request.session[CARRIED_AS] = str(session.pk)
    user.live_session_uuid = session.pk
    record(actions.SESSION_STARTED, session, by=by, request=request)
    return session


def _must_be_as_checked(user: User) -> None:
    """The person's row is locked first, as a new password and a block lock it: one of the two sees the other."""
    now = User.objects.select_for_update().filter(pk=user.pk).values_list("password", "is_active").first()
    if now != (user.password, user.is_active):
        raise PermissionDenied(gettext("Your account was changed at this moment. Sign in again."))


def end(
    sessions: QuerySet[LiveSession], *, reason: Reason, by: log.Actor, now: datetime, request: HttpRequest | None = None
) -> int:
    """Ends those that are still open. The number is exact: of two callers, one ends a session and writes its entry."""
    ended = 0
    with transaction.atomic():
        # In one order for everybody, so that two callers wait for each other and never deadlock.
        for session in _open(sessions).select_related("user", "acting_role").order_by("pk"):
            if _open(LiveSession.objects.filter(pk=session.pk)).update(ended_at=now, end_reason=reason):
                role = {} if session.acting_role is None else {"role": session.acting_role.name}
                record(actions.SESSION_ENDED, session, by=by, request=request, reason=reason.value, **role)
                _tell_sockets(session.pk, session.user_id)
                ended += 1
    return ended


def ask_again(people: Iterable[UUID]) -> None:
    """The people of these keys may do less from this transaction on: their open sockets look at once what is left."""
    for session, user in _open(LiveSession.objects.filter(user__in=people)).order_by("pk").values_list("pk", "user_id"):
        _tell_sockets(session, user)


def _tell_sockets(session: UUID, user: UUID) -> None:
    transaction.on_commit(partial(session_news.changed, SessionRef(session, user)), robust=True)


def end_others(
    user: User, *, keep: UUID, reason: Reason, by: log.Actor, now: datetime, request: HttpRequest | None = None
) -> int:
    """Ends the person's sessions but the one to keep."""
    others = _run_by(user).exclude(pk=keep)
    return end(others, reason=reason, by=by, now=now, request=request)


def end_all(user: User, *, reason: Reason, by: log.Actor, now: datetime, request: HttpRequest | None = None) -> int:
    """Ends every session of the person, as after a reset."""
    return end(_run_by(user), reason=reason, by=by, now=now, request=request)


def expire(sessions: QuerySet[LiveSession], *, now: datetime) -> int:
    """Ends those whose time is over."""
    return end(sessions.filter(expires_at__lte=now), reason=Reason.EXPIRED, by=SYSTEM, now=now)


def own(user: User, text: str) -> LiveSession | None:
    """The person's session of this uuid, live or not; None alike for somebody else's and for a text that is no uuid."""
    try:
        return LiveSession.objects.filter(pk=UUID(text), user=user).first()
    except ValueError:
        return None


def live_ones(user: User, *, now: datetime) -> QuerySet[LiveSession]:
    """The person's live sessions, newest first."""
    rows = _open(LiveSession.objects.filter(user=user, expires_at__gt=now))
    return rows.select_related("impersonator", "acting_role").order_by("-created_at", "pk")


def ended_ones(user: User) -> QuerySet[LiveSession]:
    """The person's sessions that are over, the last one first."""
    rows = LiveSession.objects.filter(user=user).exclude(ended_at=None)
    return rows.select_related("impersonator", "acting_role").order_by("-ended_at", "pk")


def live(ref: SessionRef, *, now: datetime) -> LiveSession | None:
    """The row, when it is this person's, open and within its time: one query. An expired one is ended in passing."""
    rows = LiveSession.objects.filter(pk=ref.session_uuid, user=ref.user_uuid)
    found = _open(rows).filter(expires_at__gt=now).select_related("impersonator", "acting_role").first()
    if found is None:
        expire(rows, now=now)
    return found


def reference(request: HttpRequest) -> SessionRef | None:
    """The live session of this request, from its signed browser session only; None for a visitor."""
    return carried(request) if request.user.is_authenticated else None


def reference_in(browser_session: SessionBase) -> SessionRef | None:
    """The live session of a browser session without a request, as of a socket: as Django's own, it is bound to the password."""
    ref = _carried_in(browser_session)
    person = None if ref is None else User.objects.filter(pk=ref.user_uuid).first()
    if person is None:
        return None
    hashes = [person.get_session_auth_hash(), *person.get_session_auth_fallback_hash()]
    bound = str(browser_session.get(HASH_SESSION_KEY, ""))
    return ref if any(constant_time_compare(bound, known) for known in hashes) else None


def carried(request: HttpRequest) -> SessionRef | None:
    """What the signed browser session says, live or not."""
    return _carried_in(request.session)


def _carried_in(browser_session: SessionBase) -> SessionRef | None:
    try:
        return SessionRef(UUID(str(browser_session[CARRIED_AS])), UUID(str(browser_session[SESSION_KEY])))
    except (KeyError, ValueError):
        return None


def _run_by(user: User) -> QuerySet[LiveSession]:
    """The person's own, and those in which they look at the site as somebody else."""
    return LiveSession.objects.filter(Q(user=user) | Q(impersonator=user))


def _open(sessions: QuerySet[LiveSession]) -> QuerySet[LiveSession]:
    return sessions.filter(ended_at=None)


def record(action: str, session: LiveSession, *, by: log.Actor, request: HttpRequest | None, **metadata: Any) -> None:
    """The entry of a change of the session, in its transaction. `session.user` is asked for: load it with the row."""
    if session.impersonator_id is not None:
        metadata["impersonator"] = str(session.impersonator_id)
    log.write(
        action=action,
        mode=log.Mode.CRON if by == SYSTEM else log.Mode.MANUAL,
        actor=by,
        resource_type="session",
        resource_uuid=str(session.pk),
        target=session.user.email,
        request_id=getattr(request, "request_id", ""),
        ip=None if request is None else address.of(request),
        metadata={"user": str(session.user_id), **metadata},
    )


@receiver(post_save, sender=User)
def _after_block(*, instance: User, update_fields: frozenset[str] | None, **_: Any) -> None:
    """Whichever door blocks a person: their sessions end, and those in which they look at the site as somebody else."""
    if instance.is_active or (update_fields is not None and "is_active" not in update_fields):
        return
    by, request = changer(instance)
    end(_run_by(instance), reason=Reason.BLOCKED, by=by, now=timezone.now(), request=request)


@receiver(user_logged_in)
def _after_sign_in(*, request: HttpRequest, user: User, **_: Any) -> None:
    start(request, user, now=timezone.now())


@receiver(user_logged_out)
def _before_sign_out(*, request: HttpRequest, user: User | None, **_: Any) -> None:
    ref = carried(request)
    if user is not None and ref is not None:
        rows = LiveSession.objects.filter(pk=ref.session_uuid)
        end(rows, reason=Reason.SIGNED_OUT, by=acting(user), now=timezone.now(), request=request)
