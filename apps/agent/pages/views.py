"""The chat's pages: one template for the whole page, and the same parts of it as fragments for the script that keeps them fresh (UI-1).

Everything is read through the checked functions, so a page shows what the REST face would, and what is not the person's is not there.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from apps.agent import access, conversations, endpoints, offers, paging, placed_cards, turns
from apps.agent.demo import commands
from apps.agent.pages import markdown, rows
from apps.agent.rest.base import Caller, caller
from apps.api.problems import Problem
from apps.api.tool import Tool

# Messages of the first look, and of each look further back.
AT_ONCE = 50
MOST_ALSO = 40

Page = Callable[..., HttpResponse]


def _page(view: Page) -> Page:
    """For people who may use the assistant now, and kept by no browser."""

    @wraps(view)
    def guarded(request: HttpRequest, **parts: str) -> HttpResponse:
        try:
            return view(request, caller(request), **parts)
        except Problem as problem:
            return _refused(request, problem)

    return never_cache(login_required(require_safe(guarded)))


def _refused(request: HttpRequest, problem: Problem) -> HttpResponse:
    if problem.code == "unauthorized":
        return redirect_to_login(request.get_full_path())
    return render(request, "agent/closed.html", {"code": problem.code}, status=problem.kind.status)


@_page
def home(request: HttpRequest, who: Caller) -> HttpResponse:
    """The list, and an empty chat that begins with the first text."""
    shown = _everything(request, who, chat=None)
    return render(request, "agent/chat.html", shown)


@_page
def chat(request: HttpRequest, who: Caller, uuid: str) -> HttpResponse:
    """One chat, at its end."""
    found = conversations.describe_conversation(who.ref, uuid, impersonated=who.impersonated)
    messages = conversations.list_messages(who.ref, uuid, impersonated=who.impersonated, latest=True, limit=AT_ONCE)
    shown = _everything(request, who, chat=found)
    shown["thread"] = {
        "rows": _rows(who, found["uuid"], messages),
        "has_earlier": bool(messages) and messages[0]["number"] > 1,
    }
    shown["turn"] = rows.turn(turns.get_turn(who.ref, uuid, impersonated=who.impersonated))
    return render(request, "agent/chat.html", shown)


@_page
def thread(request: HttpRequest, who: Caller, uuid: str) -> HttpResponse:
    """What changed: the messages `after` one, those of `also`, or the page `before` one; the turn and the title as they are now."""
    found = conversations.describe_conversation(who.ref, uuid, impersonated=who.impersonated)
    before, limit = request.GET.get("before"), AT_ONCE
    messages = []
    if before is not None:
        messages = conversations.list_messages(who.ref, uuid, impersonated=who.impersonated, before=before, limit=limit)
    elif "after" in request.GET:
        limit = paging.MOST_MESSAGES
        after = request.GET["after"] or None
        messages = conversations.list_messages(who.ref, uuid, impersonated=who.impersonated, after=after, limit=limit)
    has_more = before is None and len(messages) == limit
    messages += _also(who, uuid, request, known={one["uuid"] for one in messages})
    shown = {
        "chat": found,
        "rows": _rows(who, found["uuid"], messages),
        "has_more": has_more,
        "has_earlier": before is not None and bool(messages) and messages[0]["number"] > 1,
        "turn": rows.turn(turns.get_turn(who.ref, uuid, impersonated=who.impersonated)),
    }
    return render(request, "agent/_fragment.html", shown)


@_page
def listed(request: HttpRequest, who: Caller) -> HttpResponse:
    """The list of chats, or those with the words of `q`."""
    shown = _listed(request, who)
    shown["chat"] = {"uuid": access.known(request.GET.get("here"))}
    return render(request, "agent/_list.html", shown)


@_page
def tools(request: HttpRequest, who: Caller) -> HttpResponse:
    """The tools that may be called by hand, for the completion."""
    offered = placed_cards.callable_tools(who.ref, impersonated=who.impersonated)
    return JsonResponse(
        {"tools": [{"name": one.alias, "title": str(one.title), "usage": _usage(one)} for one in offered]}
    )


@never_cache
@login_required
@require_safe
def leave(request: HttpRequest) -> HttpResponse:
    """Where a link in an answer leads: its host, before anybody goes there."""
    to = request.GET.get("to", "")
    if not markdown.leads_away(to):
        raise Http404
    return render(request, "agent/leave.html", {"to": to, "host": urlsplit(to).hostname})


def _everything(request: HttpRequest, who: Caller, *, chat: Mapping[str, Any] | None) -> dict[str, Any]:
    allowed = access.authorize(who.ref, impersonated=who.impersonated)
    return {
        **_listed(request, who),
        "chat": chat,
        "thread": {"rows": []},
        "turn": rows.TurnRow(),
        "is_demo": endpoints.is_demo(),
        "suggestions": getattr(settings, "AGENT_SUGGESTIONS", ()),
        "max_chars": allowed.options.agent_history_chars,
    }


def _listed(request: HttpRequest, who: Caller) -> dict[str, Any]:
    query, cursor = request.GET.get("q", "").strip(), request.GET.get("cursor") or None
    found = (
        conversations.search(who.ref, query, impersonated=who.impersonated, cursor=cursor)
        if query
        else conversations.list_conversations(who.ref, impersonated=who.impersonated, cursor=cursor)
    )
    return {"list": {"chats": found["conversations"], "next_cursor": found["next_cursor"], "query": query}}


def _also(who: Caller, uuid: str, request: HttpRequest, *, known: set[UUID]) -> list[Any]:
    """The messages that are asked for by name; one that is gone is left out."""
    names = [access.known(part) for part in request.GET.get("also", "").split(",")[:MOST_ALSO] if part]
    found = []
    for name in names:
        if name is None or name in known:
            continue
        try:
            found.append(conversations.get_message(who.ref, uuid, name, impersonated=who.impersonated))
        except Problem as problem:
            if problem.code != "not_found":
                raise
    return found


def _rows(who: Caller, conversation: UUID, messages: list[Any]) -> list[rows.Row]:
    placed = placed_cards.of_messages(
        who.ref, conversation, [one["uuid"] for one in messages], impersonated=who.impersonated
    )
    below: dict[UUID, list[rows.CardRow]] = {}
    for one in placed:
        row = rows.card(one.shape, code=one.code, replaced_by=one.replaced_by, is_shown=one.is_visible)
        below.setdefault(one.message, []).append(row)
    return rows.rows(messages, {message: tuple(found) for message, found in below.items()})


def _usage(tool: Tool) -> str:
    return commands.usage(offers.of(tool))
