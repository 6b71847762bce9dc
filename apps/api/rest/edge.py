"""Every answer under the API's paths names its request, and each of 400 and above is a problem (RF-11, PR-1), whoever made it."""

from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from apps.api import addresses, doorway, problems
from apps.api.steps import door, exposure

# Answers that a request may get before the flow looked at its URL: no such path, no such method.
_OUTSIDE_THE_FLOW = (404, 405)
_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")


class ProblemAnswers:
    """Outside every middleware that answers by itself: a missing route, a bad host, a crash with DEBUG on or off come out alike."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.prefixes: tuple[str, ...] = tuple(getattr(settings, "API_PATHS", ("/api/", "/mcp/")))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if not f"{request.path}/".startswith(self.prefixes):
            return answer
        if answer.status_code in _OUTSIDE_THE_FLOW and _shows_a_credential(request):
            answer = doorway.problem_response(door.credential_in_url(), request)
        answer = _problem(answer, request) or answer
        answer.headers["X-Request-ID"] = doorway.request_id(request)
        return answer


def _shows_a_credential(request: HttpRequest) -> bool:
    """A URL that was pasted into a browser leaks its key as well (KY-5)."""
    query = request.META.get("QUERY_STRING", "")
    ip = addresses.caller(request.META)
    try:
        return exposure.in_url(request.path, query, request_id=doorway.request_id(request), ip=ip)
    except DatabaseError:
        # Only the text of a well-formed key asks the database: it is one, marked or not.
        return True


def _problem(answer: HttpResponseBase, request: HttpRequest) -> HttpResponseBase | None:
    """The problem to send instead; None where the answer may go as it is."""
    if answer.status_code < 400 or answer.headers.get("Content-Type", "").startswith(problems.MEDIA_TYPE):
        return None
    if getattr(answer, "is_protocol_fault", False):
        return None  # JSON-RPC has a form of its own
    made = doorway.problem_response(problems.of_status(answer.status_code), request)
    for name in _KEPT:
        if name in answer.headers:
            made[name] = answer.headers[name]
    answer.close()
    return made
