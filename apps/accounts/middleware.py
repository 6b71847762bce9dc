"""The live session row is asked once a request, and only when somebody looks at `request.user`."""

from collections.abc import Callable
from functools import partial

from asgiref.sync import sync_to_async
from django.contrib.auth.middleware import get_user
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.functional import SimpleLazyObject

from apps.accounts import sessions
from apps.accounts.models import User


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


def _person(request: HttpRequest) -> User | AnonymousUser:
    user = get_user(request)
    if not isinstance(user, User):
        return AnonymousUser()
    ref = sessions.carried(request)
    session = None if ref is None else sessions.live(ref, now=timezone.now())
    if session is None:
        request.session.flush()
        return AnonymousUser()
    user.live_session, user.live_session_uuid = session, session.pk
    return user


def _resolved(request: HttpRequest) -> User | AnonymousUser:
    return request.user if request.user.is_authenticated else AnonymousUser()
