"""`/api/agent/conversations/<uuid>/confirmations`: the cards of held writes, and their person's yes and no (CH-6, TU-3)."""

from collections.abc import Callable
from dataclasses import asdict

from django.http import HttpRequest, HttpResponse

from apps.agent import cards
from apps.agent.cards import Decided
from apps.agent.rest import base
from apps.agent.rest.base import AgentView


class ConfirmationsView(AgentView):
    """`GET`: those whose tool is open to the person now."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, frozenset())
        found = cards.list_confirmations(caller.ref, uuid, impersonated=caller.impersonated)
        return base.answer({"confirmations": found})


class DecisionView(AgentView):
    """`POST` of a yes or a no: `{"confirmation", "replaced_by", "code"}`. What the tool answered stays inside."""

    http_method_names = ["post"]
    decide: Callable[..., Decided] | None = None

    def post(self, request: HttpRequest, uuid: str, confirmation: str) -> HttpResponse:
        caller = base.caller(request)
        base.empty_body(request)
        assert self.decide is not None  # noqa: S101 - the path says which
        context = base.context(request)
        decided = self.decide(caller.ref, uuid, confirmation, impersonated=caller.impersonated, context=context)
        return base.answer(asdict(decided))
