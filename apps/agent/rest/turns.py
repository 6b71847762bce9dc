"""`/api/agent/conversations/<uuid>/turn`: how far the answer is, stop, and try again (CH-6)."""

from django.http import HttpRequest, HttpResponse

from apps.agent import turns
from apps.agent.rest import base
from apps.agent.rest.base import AgentView


class TurnView(AgentView):
    """`GET` of the last turn: `{"turn": null}` before the first one."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, frozenset())
        return base.answer({"turn": turns.get_turn(caller.ref, uuid, impersonated=caller.impersonated)})


class StopView(AgentView):
    """`POST`: from any tab, and however often."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.empty_body(request)
        return base.answer({"turn": turns.stop(caller.ref, uuid, impersonated=caller.impersonated)})


class RetryView(AgentView):
    """`POST`. 202: another turn waits for a worker."""

    http_method_names = ["post"]

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.empty_body(request)
        context = base.context(request)
        turn = turns.retry(caller.ref, uuid, impersonated=caller.impersonated, context=context)
        return base.answer({"turn": turn}, status=202)
