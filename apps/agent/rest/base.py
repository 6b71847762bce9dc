"""What the views under `/api/agent/` share (CH-6): who calls, a body read strictly, and every refusal as a problem document.

They are for the browser of a signed-in person: session and CSRF token, no key. The generic middleware for impersonations and account gates
stands aside here (`SELF_CHECKED_PATHS`): the functions that the views call refuse by themselves, with their own codes.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.decorators import method_decorator
from django.utils.translation import get_language
from django.views import View

from apps.agent import refusals
from apps.api import addresses, doorway, faults, people, strict_json
from apps.api.problems import Problem
from apps.api.steps import door, exposure

# No registered scheme is a cookie's; a 401 must name one (RFC 9110).
_CHALLENGE = {"WWW-Authenticate": 'Session realm="agent"'}


@dataclass(frozen=True, kw_only=True)
class Caller:
    """The session reference of the request, from its signed browser session alone, and whether somebody looks as its person."""

    ref: Any
    impersonated: bool


@method_decorator(login_not_required, name="dispatch")
class AgentView(View):
    """A view per path: parse, one call, answer. `http_method_names` are those that the path has."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        try:
            _refuse_credential_in_url(request)
            return super().dispatch(request, *args, **kwargs)
        except Problem as problem:
            return refused(problem, request)
        except (DatabaseError, InterfaceError) as error:
            problem_of_database = faults.problem_of(error)
            if problem_of_database is None:
                raise
            return refused(problem_of_database, request)

    def http_method_not_allowed(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """PR-1: with the methods that there are."""
        allowed = {"Allow": ", ".join(name.upper() for name in self.http_method_names)}
        return refused(Problem("method_not_allowed", "This path has no such method.", headers=allowed), request)


def caller(request: HttpRequest) -> Caller:
    """Raises Problem `unauthorized` for a visitor, before anything of the body is read."""
    ref = people.current().reference(request)
    if ref is None:
        raise refusals.unauthorized("session_gone")
    return Caller(ref=ref, impersonated=people.current().is_impersonated(request))


def body(request: HttpRequest, members: Set[str]) -> dict[str, Any]:
    """The JSON object of the body, with none but these members. A key's text in it is refused (KY-5), and goes to no model."""
    try:
        found = doorway.read_json(request)
    except Problem as problem:
        _shows_a_key(request, problem.unread)
        raise
    if any(_shows_a_key(request, part) for part in strict_json.parts(found) if isinstance(part, str)):
        raise Problem(
            "credential_in_body", "An API key does not belong in a chat. Nothing was stored; replace the key."
        )
    if unknown := sorted(set(found) - members):
        raise refusals.invalid("", f"Not known here: {', '.join(unknown)}.")
    return found


def empty_body(request: HttpRequest) -> None:
    """For a path whose call takes nothing: no body, or `{}`."""
    body(request, frozenset())


def limit(request: HttpRequest, default: int) -> int:
    """The parameter `limit`, a whole number from 1; what is above the most is the most."""
    text = request.GET.get("limit")
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text)):
        raise refusals.invalid("/limit", "A whole number from 1.")
    return int(text)


def only(request: HttpRequest, names: Set[str]) -> None:
    """Refuse a parameter that this path does not know, or one that came twice: a misspelt filter must not read as none."""
    for name, values in request.GET.lists():
        if name not in names or len(values) > 1:
            raise refusals.invalid(f"/{name}", "Not known here." if name not in names else "It came more than once.")


def context(request: HttpRequest) -> dict[str, Any]:
    """What the tools of a turn are told of the request (LS-7)."""
    canonical = doorway.base_url(request)
    found = {
        "language": get_language(),
        "base_url": canonical,
        "hosts": [canonical.partition("://")[2]],
        "currency": getattr(settings, "API_CURRENCY", None),
        "request_id": doorway.request_id(request),
        "ip": addresses.caller(request.META),
    }
    return {name: value for name, value in found.items() if value}


def answer(value: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """The shape as JSON."""
    sent = HttpResponse(strict_json.dumps(value), status=status, content_type="application/json")
    sent["Cache-Control"] = "no-store"
    return sent


def refused(problem: Problem, request: HttpRequest) -> HttpResponse:
    """The problem document; a 401 says how one gets in."""
    if problem.kind.status == 401:
        problem.headers = {**_CHALLENGE, **problem.headers}
    return doorway.problem_response(problem, request)


def csrf_failed(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A write without the token of the browser's own session, or from another site."""
    return refused(Problem("forbidden", "The CSRF token is missing or wrong.", reason="csrf"), request)


def _refuse_credential_in_url(request: HttpRequest) -> None:
    ip, query = addresses.caller(request.META), request.META.get("QUERY_STRING", "")
    if exposure.in_url(request.path, query, request_id=doorway.request_id(request), ip=ip):
        raise door.credential_in_url()


def _shows_a_key(request: HttpRequest, text: str) -> bool:
    ip = addresses.caller(request.META)
    return exposure.shows_a_key(text, request_id=doorway.request_id(request), ip=ip)
