"""Middleware of the whole site: every request has an id, leaves one line, and every page says what it may load.

What only people need (browser session, signed-in user, language, messages) stands aside for the paths of machines: it was
a tenth of the price of their calls, and no call may depend on a cookie.
"""

import time
from collections.abc import Callable
from typing import Any

import structlog
from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.middleware.common import CommonMiddleware
from django.middleware.locale import LocaleMiddleware
from django.utils import translation
from django.views.csrf import csrf_failure

from apps.accounts.gate_middleware import AccountGates
from apps.accounts.middleware import LiveSessions, LookingOnly
from apps.agent.rest import base
from apps.api import doorway

log = structlog.get_logger("access")

# What is called there acts for a live session and checks everything about it by itself.
SELF_CHECKED_PATHS = ("/api/agent/",)


def _printable(path: str) -> str:
    """Without the query string, where people put secrets, and without what a terminal would obey."""
    return path[:300] if path.isprintable() else ascii(path[:300])


class RequestId:
    """Sets `request.request_id`, from a sane X-Request-ID or made here.

    The context is cleared when a request begins and not when it ends: what a worker says after the answer, for instance
    that a connection could not be closed, still names the request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        request_id = doorway.request_id(request)
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        response.headers["X-Request-ID"] = request_id
        log.info(
            "request",
            method=request.method,
            path=_printable(request.path),
            status=response.status_code,
            ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return response


class ContentSecurityPolicy(CSPMiddleware):
    """The strict policy for our pages and a looser one for the admin; a view may carry its own (django-csp's decorators).

    Pages only: a policy on JSON protects nothing and would be built on every call.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Add the header to HTML."""
        if not response.headers.get("Content-Type", "").startswith("text/html"):
            return response
        return super().process_response(request, response)

    def get_policy_parts(
        self,
        request: HttpRequest,
        response: HttpResponseBase,
        report_only: bool = False,  # noqa: FBT001, FBT002  # the library's signature
    ) -> PolicyParts:
        """The admin's policy where the view has none."""
        parts = super().get_policy_parts(request, response, report_only)
        if parts.config is None and request.path_info.startswith("/admin/"):
            parts.config = settings.ADMIN_CONTENT_SECURITY_POLICY
        return parts


def is_for_machines(request: HttpRequest) -> bool:
    """A path that only machines call, with a key or as visitors."""
    return request.path.startswith(settings.MACHINE_PATHS)


class _ForPeople:
    """A middleware that the calls of machines pass by."""

    get_response: Any

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if is_for_machines(request):
            passed: HttpResponseBase = self.get_response(request)
            return passed
        answer: HttpResponseBase = super().__call__(request)  # type: ignore[misc]  # of the middleware that it stands before
        return answer


class BrowserSessions(_ForPeople, SessionMiddleware):
    """Django's browser sessions."""


class SignedInUsers(_ForPeople, AuthenticationMiddleware):
    """Django's user of the browser session."""


class LivePeople(_ForPeople, LiveSessions):
    """The user, as long as their session row lives."""


class Impersonations(_ForPeople, LookingOnly):
    """They change nothing."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Where the call itself refuses an impersonator, with its own code, and their looking too."""
        if request.path.startswith(SELF_CHECKED_PATHS):
            passed: HttpResponseBase = self.get_response(request)
            return passed
        return super().__call__(request)


class Gates(AccountGates):
    """The gates of accounts for the pages of people."""

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        """Nobody signed in calls the paths of machines."""
        return None if is_for_machines(request) else super().process_view(request, view, args, kwargs)


class Messages(_ForPeople, MessageMiddleware):
    """Django's messages."""


class Languages(_ForPeople, LocaleMiddleware):
    """Pages speak the visitor's language, machines are told English; a handler that answers in words asks its context."""

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Nothing of the language of the thread's request before stays."""
        if is_for_machines(request):
            translation.activate(settings.LANGUAGE_CODE)
        return super().__call__(request)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """`CSRF_FAILURE_VIEW`: a problem where problems are understood, Django's page elsewhere."""
    if request.path.startswith(SELF_CHECKED_PATHS):
        return base.csrf_failed(request, reason)
    return csrf_failure(request, reason)


class Common(CommonMiddleware):
    """Django's, but a path of machines that leads nowhere is not looked up once more with a slash."""

    def should_redirect_with_slash(self, request: HttpRequest) -> bool:
        """Pages only."""
        return not is_for_machines(request) and super().should_redirect_with_slash(request)
