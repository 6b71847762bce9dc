"""The switch in the header (PS-4): this session acts as one role, or as all of them."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from apps.accounts import roles, sessions
from apps.accounts.models import User
from apps.accounts.sessions import SessionRef
from apps.accounts.views import guards

PAGE = "own_sessions"


@guards.own_act(PAGE)
def choose(request: HttpRequest, person: User) -> HttpResponse:
    """Takes the role's number, or nothing for all roles, and leads back to where the choice was made."""
    ref = sessions.reference(request)
    try:
        if ref is not None:
            _choose(request, ref)
    except roles.SwitchedOff:
        messages.error(request, gettext("Nothing was changed: acting as one role is switched off."))
    except roles.Refused:
        messages.error(request, gettext("Nothing was changed: you do not hold that role."))
    return HttpResponseRedirect(_back(request))


def _choose(request: HttpRequest, ref: SessionRef) -> None:
    text = request.POST.get("role", "")
    if text == "":
        roles.choose(ref, None, now=timezone.now(), request=request)
        messages.success(request, gettext("This session acts with all your roles."))
        return
    role = roles.choose(ref, _number(text), now=timezone.now(), request=request)
    messages.success(request, gettext("This session acts as %(role)s.") % {"role": role})


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise roles.NotHeld
    return int(text)


def _back(request: HttpRequest) -> str:
    target = request.POST.get("next", "")
    hosts = {request.get_host()}
    is_ours = url_has_allowed_host_and_scheme(target, hosts, require_https=request.is_secure())
    return target if is_ours else reverse(PAGE)
