"""The account gates for pages (PS-3): a person who may not act yet gets to see the page where that can be mended, and no other."""

from collections.abc import Callable, Mapping
from typing import Any

from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.urls import reverse

from apps.accounts import gates
from apps.accounts.gates import Refusal
from apps.accounts.models import User
from apps.api import credentials, switches

# A blocked person is nobody to Django's own backend; with another one, they end here.
PAGES: Mapping[Refusal, str] = {
    Refusal.INACTIVE: "sign_in",
    Refusal.UNCONFIRMED: "email",
    Refusal.REFERRAL_REQUIRED: "referral",
}
# The ways out.
ALWAYS_OPEN = frozenset({"sign_out", "admin:logout", "end_impersonation"})


class AccountGates:
    """After the middleware that says who is there.

    What is open to everybody (Django's `login_not_required`) stays so, and never looks who is there. The settings are read only
    for a person whom they could stop.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponse | None:
        if not getattr(view, "login_required", True) or not isinstance(request.user, User):
            return None
        refusal = refused(request.user)
        match = request.resolver_match
        if refusal is None or match is None or match.view_name in ALWAYS_OPEN | {PAGES[refusal]}:
            return None
        if request.method == "GET":
            return redirect_to_login(request.get_full_path(), reverse(PAGES[refusal]))
        return redirect(PAGES[refusal])


def refused(user: User) -> Refusal | None:
    """The gate that is shut for this person now, with at most one query."""
    standing = gates.Standing(
        is_active=user.is_active,
        email_confirmed=user.email_confirmed_at is not None,
        referral_given=user.referral_code != "",
    )
    if gates.refusal(standing, email_required=True, referral_required=True) is None:
        return None
    now = switches.parse(credentials.read(None).settings)
    return gates.refusal(
        standing, email_required=now.accounts_email_required, referral_required=now.accounts_referral_required
    )
