"""One's own sessions (PS-2): to see them and to end them."""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth import logout
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render, resolve_url
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.views.decorators.cache import never_cache

from apps.accounts import browsers, impersonation, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.views import guards

PAGE = "own_sessions"
ENDED_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A session as the page shows it."""

    row: LiveSession
    browser: str
    is_this: bool


@never_cache
@guards.own_page
def listing(request: HttpRequest, person: User) -> HttpResponse:
    """The live ones, this one first, and those that ended lately."""
    now = timezone.now()
    sessions.expire(LiveSession.objects.filter(user=person), now=now)
    live = _shown(sessions.live_ones(person, now=now), person)
    live.sort(key=lambda shown: not shown.is_this)
    context = {
        "live": live,
        "others": len(live) - 1,
        "ended": _shown(sessions.ended_ones(person)[:ENDED_SHOWN], person),
        "may_end": impersonation.impersonator(request) is None,
    }
    return render(request, "accounts/sessions.html", context)


@guards.own_act(PAGE)
def end(request: HttpRequest, person: User, session: str) -> HttpResponse:
    """Ends one of the person's sessions; to end the present one is to sign out."""
    row = sessions.own(person, session)
    if row is None:
        return guards.not_found(request)
    if row.pk == person.live_session_uuid:
        logout(request)
        return HttpResponseRedirect(resolve_url("sign_in"))
    ended = sessions.end(
        LiveSession.objects.filter(pk=row.pk),
        reason=sessions.Reason.ENDED_BY_OWNER,
        by=sessions.actor(person),
        now=timezone.now(),
        request=request,
    )
    messages.success(request, gettext("The session is ended.") if ended else gettext("That session was over already."))
    return HttpResponseRedirect(reverse(PAGE))


@guards.own_act(PAGE)
def end_others(request: HttpRequest, person: User) -> HttpResponse:
    """Ends all of the person's sessions but the present one."""
    assert person.live_session_uuid is not None  # noqa: S101 - the middleware lets nobody in without
    ended = sessions.end_others(
        person,
        keep=person.live_session_uuid,
        reason=sessions.Reason.ENDED_BY_OWNER,
        by=sessions.actor(person),
        now=timezone.now(),
        request=request,
    )
    text = ngettext("%(count)d other session is ended.", "%(count)d other sessions are ended.", ended)
    messages.success(request, text % {"count": ended} if ended else gettext("No other session was open."))
    return HttpResponseRedirect(reverse(PAGE))


def _shown(rows: QuerySet[LiveSession], person: User) -> list[Shown]:
    return [
        Shown(row=row, browser=browsers.name(row.user_agent), is_this=row.pk == person.live_session_uuid)
        for row in rows
    ]
