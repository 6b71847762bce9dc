"""Signing in and out."""

from typing import Any

from django.conf import settings
from django.contrib import admin
from django.contrib.auth import REDIRECT_FIELD_NAME, logout
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView, redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse

from apps.accounts.forms import SignInForm
from apps.accounts.views.limits import Waiting


class SignIn(Waiting, LoginView):
    """Django's page with our form. It leads on to `next` on this host only."""

    authentication_form = SignInForm
    template_name = "accounts/sign_in.html"

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        # With a `next` they were sent here because they may not see it: to send them back would go round in circles.
        if request.user.is_authenticated and not self.get_redirect_url():
            return HttpResponseRedirect(resolve_url(settings.LOGIN_REDIRECT_URL))
        return super().get(request, *args, **kwargs)

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        if self.request.user.is_authenticated:
            logout(self.request)  # ends the live session that this browser leaves behind
        return super().form_valid(form)


def admin_sign_in(request: HttpRequest, extra_context: Any = None) -> HttpResponseRedirect:
    """The admin's own log-in page has no limit of attempts: ours stands in for it."""
    target = request.GET.get(REDIRECT_FIELD_NAME) or reverse("admin:index")
    if admin.site.has_permission(request):
        return HttpResponseRedirect(reverse("admin:index"))
    return redirect_to_login(target, "sign_in")
