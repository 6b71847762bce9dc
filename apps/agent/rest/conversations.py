"""`/api/agent/conversations`: the list and the search, one chat, and what becomes of it (CH-6)."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from apps.agent import conversations, paging
from apps.agent.rest import base
from apps.agent.rest.base import AgentView
from apps.agent.shapes import ChatShape


class ConversationsView(AgentView):
    """`GET` (`q`, `cursor`, `limit`) and `POST {title}`."""

    http_method_names = ["get", "head", "post"]

    def get(self, request: HttpRequest) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, {"q", "cursor", "limit"})
        limit, cursor = base.limit(request, paging.CHATS), request.GET.get("cursor")
        text = request.GET.get("q", "").strip()
        if text:
            page = conversations.search(caller.ref, text, impersonated=caller.impersonated, limit=limit, cursor=cursor)
        else:
            page = conversations.list_conversations(
                caller.ref, impersonated=caller.impersonated, limit=limit, cursor=cursor
            )
        return base.answer(page)

    def post(self, request: HttpRequest) -> HttpResponse:
        caller = base.caller(request)
        attrs = base.body(request, {"title"})
        chat = conversations.create_conversation(caller.ref, attrs, impersonated=caller.impersonated)
        return base.answer(chat, status=201)


class ConversationView(AgentView):
    """`GET`, `PATCH {title}` and `DELETE` of one chat."""

    http_method_names = ["get", "head", "patch", "delete"]

    def get(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.only(request, frozenset())
        return base.answer(conversations.describe_conversation(caller.ref, uuid, impersonated=caller.impersonated))

    def patch(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        title = base.body(request, {"title"}).get("title")
        chat = conversations.rename_conversation(caller.ref, uuid, title, impersonated=caller.impersonated)
        return base.answer(chat)

    def delete(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.empty_body(request)
        return base.answer(conversations.delete_conversation(caller.ref, uuid, impersonated=caller.impersonated))


class ChangeView(AgentView):
    """`POST …/archive`, `…/unarchive` and `…/restore`, each one function of `conversations`."""

    http_method_names = ["post"]

    change: Callable[..., ChatShape] = staticmethod(conversations.archive_conversation)

    def post(self, request: HttpRequest, uuid: str) -> HttpResponse:
        caller = base.caller(request)
        base.empty_body(request)
        return base.answer(self.change(caller.ref, uuid, impersonated=caller.impersonated))
