"""What the pages of one's own account share: who may act on them, and the two pages that refuse."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse

from apps.accounts import impersonation
from apps.accounts.models import User

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]
OwnView = Callable[Concatenate[HttpRequest, User, P], HttpResponse]


def own_page(view: OwnView[P]) -> View[P]:
    """A page of the signed-in person, whom the view gets; a visitor signs in first. An impersonator may look at it."""

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if not isinstance(request.user, User):
            return redirect_to_login(request.get_full_path(), "sign_in")
        return view(request, request.user, *args, **kwargs)

    return guarded


def own_act(page: str) -> Callable[[OwnView[P]], View[P]]:
    """A change of one's own account, by POST from the page of this name, never for an impersonator (PS-6).

    Whoever comes otherwise, after signing in for instance, gets to that page, and nothing is changed.
    """

    def decorate(view: OwnView[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            if not isinstance(request.user, User):
                return redirect_to_login(reverse(page), "sign_in")
            if request.method != "POST":
                return HttpResponseRedirect(reverse(page))
            if impersonation.impersonator(request) is not None:
                return impersonated(request)
            return view(request, request.user, *args, **kwargs)

        return guarded

    return decorate


def impersonated(request: HttpRequest) -> HttpResponse:
    """403, with the reason: whoever looks at the site as somebody else changes nothing of theirs."""
    return render(request, "accounts/impersonated.html", status=403)


def not_found(request: HttpRequest) -> HttpResponse:
    """The one answer to what is not there and to what is somebody else's: to the byte, and with DEBUG too."""
    return render(request, "404.html", status=404)
