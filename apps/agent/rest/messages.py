"""`/api/agent/conversations/<uuid>/messages`: pages of a chat, one message, and a text that the assistant answers (CH-6)."""

from typing import Any

from django.http import HttpRequest, HttpResponse

from apps.agent import conversations, paging, refusals, turns
from apps.agent.rest import base
from apps.agent.rest.base import AgentView


class MessagesView(AgentView):
    """`GET` (`after`, `before` or `latest=1`, and `limit`) and `POST {content, client_uuid}`."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, {"after", "before", "latest", "limit"})
        found = conversations.list_messages(
            caller.ref,
            uuid,
            impersonated=caller.impersonated,
            limit=base.limit(request, paging.MESSAGES),
            **_cursor(request),
        )
        return base.answer({"messages": found})

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        """202: the text is stored, and its turn waits for a worker."""
        caller = base.caller(request)
        attrs = base.body(request, {"content", "client_uuid"})
        sent = turns.send(caller.ref, uuid, attrs, impersonated=caller.impersonated, context=base.context(request))
        return base.answer(sent, status=202)


class MessageView(AgentView):
    """`GET` of one message: what a listener of an event asks for."""

    http_method_names = ["get", "head"]

    def get(self, request: HttpRequest, uuid: str, message: str) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, frozenset())
        return base.answer(conversations.get_message(caller.ref, uuid, message, impersonated=caller.impersonated))


def _cursor(request: HttpRequest) -> dict[str, Any]:
    given: dict[str, Any] = {name: request.GET[name] for name in ("after", "before") if name in request.GET}
    if "latest" in request.GET:
        if request.GET["latest"] != "1":
            raise refusals.invalid("/latest", "It is 1, or is not there.")
        given["latest"] = True
    return given
