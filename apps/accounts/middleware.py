"""The live session row is asked once a request, when somebody looks at `request.user`; an impersonation only looks."""

from collections.abc import Callable
from functools import partial

from asgiref.sync import sync_to_async
from django.contrib.auth.middleware import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from apps.accounts import impersonation, sessions
from apps.accounts.models import User
from apps.accounts.views import guards

_SAFE = ("GET", "HEAD", "OPTIONS", "TRACE")
_WAYS_OUT = ("end_impersonation", "sign_out", "admin:logout")


class LiveSessions:
    """After AuthenticationMiddleware: a browser session without a live row is a visitor's, and is forgotten.

    A request that never looks at its user, as those of the API, costs no query and doesn't touch the browser session.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        request.user = SimpleLazyObject(partial(_person, request))  # type: ignore[assignment]  # stands in, as Django's own does
        request.auser = sync_to_async(partial(_resolved, request))
        return self.get_response(request)


class LookingOnly:
    """Whoever looks at the site as somebody else changes nothing, on no page: one rule, so that none can forget it (PS-6).

    Two ways lead out: back to oneself, and signing out.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        only_looks = request.method not in _SAFE and impersonation.impersonator(request) is not None
        if only_looks and request.path not in {reverse(name) for name in _WAYS_OUT}:
            return guards.impersonated(request)
        return self.get_response(request)


def _person(request: HttpRequest) -> User | AnonymousUser:
    user = get_user(request)
    if not isinstance(user, User):
        return AnonymousUser()
    ref, now = sessions.carried(request), timezone.now()
    session = None if ref is None else sessions.live(ref, now=now)
    if session is None or not impersonation.goes_on(session, user, now=now):
        request.session.flush()
        return AnonymousUser()
    user.live_session, user.live_session_uuid = session, session.pk
    return user


def _resolved(request: HttpRequest) -> User | AnonymousUser:
    return request.user if request.user.is_authenticated else AnonymousUser()
