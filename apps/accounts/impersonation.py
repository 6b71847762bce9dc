"""Looking at the site as another person (PS-6): who may, how long, and how a request knows it.

django-hijack signs the operator in as the person and says so by its signals. The receivers here stamp the new session row
and end the one left behind, in the transaction of that request (`apps.accounts.views.impersonation`).
"""

from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.db import transaction
from django.dispatch import receiver
from django.http import HttpRequest
from django.utils import timezone
from hijack.signals import hijack_ended, hijack_started

from apps.accounts import address, gate_middleware, sessions
from apps.accounts.models import LiveSession, User
from apps.activity import actions, log

PERMISSION = "accounts.impersonate_user"


class Gone(Exception):
    """The session to leave ended meanwhile, in another tab for instance. Raised to undo the transaction."""


def impersonator(request: HttpRequest) -> User | None:
    """Who looks at the site as the person of this request; the session row says it, nothing that a client sends."""
    session = request.user.live_session if isinstance(request.user, User) else None
    return None if session is None else session.impersonator


def may_start(*, hijacker: User, hijacked: User) -> bool:
    """The one answer for the button, the view and the library (HIJACK_PERMISSION_CHECK).

    Not from an impersonation, and not from a session that acts as one role: it would be worth more afterwards.
    """
    session = hijacker.live_session
    if session is None or session.impersonator_id is not None or session.acting_role_id is not None:
        return False
    return hijacked != hijacker and hijacked.is_active and _may_look_as(hijacker, hijacked)


def may_go_on(impersonator: User, *, is_staff: bool, is_superuser: bool, permissions: Collection[str]) -> bool:
    """Whether they may look as a person with these rights now. Behind a gate, demoted or of lesser rights, they may not.

    An impersonation only reads, but nobody is to read what their own rights keep from them. Staff are for staff only.
    """
    if gate_middleware.refused(impersonator) is not None or not impersonator.has_perm(PERMISSION):
        return False
    if is_staff and not impersonator.is_staff:
        return False
    return impersonator.is_superuser or (not is_superuser and impersonator.get_all_permissions() >= set(permissions))


def goes_on(session: LiveSession, person: User, *, now: datetime) -> bool:
    """False for an impersonation that may not go on: it is ended in passing. True for every other session."""
    if session.impersonator is None or _may_look_as(session.impersonator, person):
        return True
    rows = LiveSession.objects.filter(pk=session.pk)
    sessions.end(rows, reason=sessions.Reason.IMPERSONATION_ENDED, by=sessions.SYSTEM, now=now)
    return False


def _may_look_as(impersonator: User, person: User) -> bool:
    permissions = () if person.is_superuser else person.get_all_permissions()
    return may_go_on(impersonator, is_staff=person.is_staff, is_superuser=person.is_superuser, permissions=permissions)


@receiver(hijack_started)
@transaction.atomic
def _after_start(*, request: HttpRequest, hijacker: User, hijacked: User, **_: Any) -> None:
    """Stamps the row that signing in has made, which nobody else sees before, and ends the operator's own."""
    stamp = {"impersonator": hijacker.pk}
    _leave(hijacker, hijacked, stamp, reason=sessions.Reason.IMPERSONATING, by=hijacker, request=request)
    log.write(
        action=actions.SESSION_IMPERSONATED,
        mode=log.Mode.MANUAL,
        actor=sessions.actor(hijacker),
        resource_type="user",
        resource_uuid=str(hijacked.pk),
        target=hijacked.email,
        request_id=getattr(request, "request_id", ""),
        ip=address.of(request),
        metadata={"session": str(hijacked.live_session_uuid)},
    )


@receiver(hijack_ended)
@transaction.atomic
def _after_end(*, request: HttpRequest, hijacker: User, hijacked: User, **_: Any) -> None:
    """Ends the impersonation's row; the operator has a new one of their own, without a stamp."""
    _leave(hijacked, hijacker, {}, reason=sessions.Reason.IMPERSONATION_ENDED, by=hijacker, request=request)


def _leave(
    left: User, entered: User, stamp: dict[str, Any], *, reason: sessions.Reason, by: User, request: HttpRequest
) -> None:
    """One row for the other: the new one gets its stamp and the time of the old one, so that nobody's fortnight grows.

    The old one is locked as it was when the request began: not over, and not narrowed to a role.
    """
    session, now = left.live_session, timezone.now()
    if session is None or entered.live_session_uuid is None:
        raise Gone
    rows = LiveSession.objects.filter(pk=session.pk, acting_role=session.acting_role_id, expires_at__gt=now)
    if rows.select_for_update().first() is None:
        raise Gone
    ended = sessions.end(rows, reason=reason, by=sessions.actor(by), now=now, request=request)
    new = LiveSession.objects.filter(pk=entered.live_session_uuid, user=entered, ended_at=None)
    if not ended or not new.update(**stamp, expires_at=session.expires_at):
        raise Gone
