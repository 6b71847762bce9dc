"""The pages to which a shut gate leads (PS-3): confirming one's e-mail address and giving a referral code."""

from typing import Any, cast

from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.mixins import LoginRequiredMixin
from django.contrib.auth.views import RedirectURLMixin
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.utils.translation import gettext
from django.views.generic import FormView, TemplateView

from apps.accounts import confirming, impersonation, referrals
from apps.accounts.forms_limited import ReferralForm, SendEmailForm
from apps.accounts.models import User
from apps.accounts.views.limits import Limited, Private


class Gate(Private, LoginRequiredMixin, Limited, RedirectURLMixin, FormView):  # type: ignore[type-arg]  # generic in the stubs only
    """A page of the signed-in person, which leads on when there is nothing to do here."""

    next_page = "home"

    def is_open(self, user: User) -> bool:
        raise NotImplementedError

    def get(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if self.is_open(cast(User, request.user)):
            return redirect(self.get_success_url())
        return super().get(request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        looked_at = impersonation.impersonator(self.request) is not None
        return super().get_context_data(may_act=not looked_at, **kwargs)


class Email(Gate):
    """Says that the address is to be confirmed, and sends the mail for it."""

    form_class = SendEmailForm
    template_name = "accounts/email.html"

    def is_open(self, user: User) -> bool:
        return user.email_confirmed_at is not None

    def form_valid(self, form: SendEmailForm) -> HttpResponse:
        user = cast(User, self.request.user)
        if not self.is_open(user):
            confirming.send(user)
            text = gettext("A mail is on its way to %(email)s. Open the link in it.")
            messages.success(self.request, text % {"email": user.email})
        return redirect(self.request.get_full_path())


@method_decorator(login_not_required, name="dispatch")
class EmailLink(Private, TemplateView):
    """Where the mail's link leads, signed in or not. A look at it changes nothing: mail scanners follow links."""

    template_name = "accounts/email_link.html"
    person: User | None = None

    def setup(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().setup(request, *args, **kwargs)
        self.person = confirming.person(kwargs["token"])

    def post(self, request: HttpRequest, token: str) -> HttpResponseBase:
        if self.person is not None and confirming.confirm(self.person, now=timezone.now(), request=request):
            messages.success(request, gettext("Your e-mail address is confirmed."))
            return redirect("home" if request.user == self.person else "sign_in")
        return self.get(request, token=token)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        return super().get_context_data(person=self.person, **kwargs)

    def render_to_response(self, context: dict[str, Any], **options: Any) -> HttpResponse:
        return super().render_to_response(context, status=200 if self.person else 404, **options)


class Referral(Gate):
    """Asks for a code and uses it up by one."""

    form_class = ReferralForm
    template_name = "accounts/referral.html"

    def is_open(self, user: User) -> bool:
        return user.referral_code != ""

    def form_valid(self, form: ReferralForm) -> HttpResponse:
        user = cast(User, self.request.user)
        if referrals.redeem(user, form.cleaned_data["code"], now=timezone.now(), request=self.request):
            return redirect(self.get_success_url())
        form.add_error("code", form.WRONG)
        return self.form_invalid(form)
