"""Looking at the site as another person (PS-6): who may, and how a request knows it."""

from django.http import HttpRequest

from apps.accounts.models import User

PERMISSION = "accounts.impersonate_user"


def impersonator(request: HttpRequest) -> User | None:
    """Who looks at the site as the person of this request; the session row says it, nothing that a client sends."""
    session = request.user.live_session if isinstance(request.user, User) else None
    return None if session is None else session.impersonator


def may_go_on(impersonator: User) -> bool:
    """Whether they may impersonate at all now: a blocked or demoted person's impersonations are over."""
    return impersonator.is_active and impersonator.has_perm(PERMISSION)
