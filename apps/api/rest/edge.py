"""Every answer under the API's paths names its request, and each of 400 and above is a problem (RF-11, PR-1), whoever made it."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from apps.api import doorway, problems

_KEPT = ("Allow", "Retry-After", "WWW-Authenticate")


class ProblemAnswers:
    """Outside every middleware that answers by itself: a missing route, a bad host, a crash with DEBUG on or off come out alike."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        self.prefixes: tuple[str, ...] = tuple(getattr(settings, "API_PATHS", ("/api/",)))

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if not f"{request.path}/".startswith(self.prefixes):
            return answer
        answer = _problem(answer, request) or answer
        answer.headers["X-Request-ID"] = doorway.request_id(request)
        return answer


def _problem(answer: HttpResponseBase, request: HttpRequest) -> HttpResponseBase | None:
    """The problem to send instead; None where the answer may go as it is."""
    if answer.status_code < 400 or answer.headers.get("Content-Type", "").startswith(problems.MEDIA_TYPE):
        return None
    made = doorway.problem_response(problems.of_status(answer.status_code), request)
    for name in _KEPT:
        if name in answer.headers:
            made[name] = answer.headers[name]
    answer.close()
    return made
