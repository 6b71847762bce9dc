"""`openapi.json` of both audiences, through the gate like every listing, and the page with the reader."""

from dataclasses import replace

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from rest_framework.request import Request

from apps.api import doorway, executor
from apps.api.call import Audience, Refusal
from apps.api.openapi import document
from apps.api.problems import Problem
from apps.api.rest.views import GateView, plain
from apps.api.steps import door

# The reader writes styles of its own into its elements; scripts come from this host alone, and nothing is sent elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


class DocumentView(GateView):
    """`GET …/openapi.json`."""

    http_method_names = ["get", "head"]

    def get(self, request: Request) -> HttpResponse:
        return _sent(plain(request), self.audience)


def _sent(request: HttpRequest, audience: Audience) -> HttpResponse:
    call = doorway.call_of(request, audience)
    found = executor.enter(call) or executor.visible(call, audience)
    if isinstance(found, Refusal):
        return doorway.response(found)
    assert call.switches is not None  # noqa: S101 - the first step read them
    answer = document.answer(found.tools, audience, base_url=doorway.base_url(request), now=call.switches)
    return doorway.response(replace(answer, headers=found.headers))


class DocsView(GateView):
    """`GET …/docs`: the page is the same for everybody; what it shows, the browser asks for with the key that is typed there."""

    http_method_names = ["get", "head"]

    def get(self, request: Request) -> HttpResponse:
        inner = plain(request)
        try:
            door.no_credential_in_url(doorway.call_of(inner, "public"))
        except Problem as problem:
            return doorway.problem_response(problem, inner)
        page = render(inner, "api/docs.html")
        page["Content-Security-Policy"] = POLICY
        page["Cache-Control"] = "no-store"
        page["Referrer-Policy"] = "no-referrer"
        return page
