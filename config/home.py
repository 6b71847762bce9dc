"""The address without a path leads everybody to what they may open."""

from django.contrib import admin
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseRedirect
from django.shortcuts import redirect

from apps.agent import conversations
from apps.agent.rest.base import caller
from apps.api.problems import Problem


@login_required
def home(request: HttpRequest) -> HttpResponseRedirect:
    """Whoever may use the assistant to their chats, else operators to the admin site and everybody else to their own sessions."""
    if _may_chat(request):
        return redirect("chat:home")
    return redirect("admin:index" if admin.site.has_permission(request) else "own_sessions")


def _may_chat(request: HttpRequest) -> bool:
    try:
        who = caller(request)
        conversations.authorize_session(who.ref, impersonated=who.impersonated)
    except Problem:
        return False
    return True
