"""Changing one's password, and setting a new one by a link from a mail: Django's pages with our rules (PS-2)."""

from typing import Any, cast

from django.contrib.auth import update_session_auth_hash, views
from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm, SetPasswordForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.utils.decorators import method_decorator
from django.utils.translation import gettext

from apps.accounts import passwords
from apps.accounts.forms_limited import ChangePasswordForm, ResetRequestForm
from apps.accounts.models import User
from apps.accounts.views.limits import Limited, Private


class Change(Private, Limited, views.PasswordChangeView):
    """Asks for the old password, keeps this session and ends the person's others."""

    form_class = ChangePasswordForm
    template_name = "accounts/password_change.html"

    def form_valid(self, form: PasswordChangeForm) -> HttpResponse:
        user = cast(User, self.request.user)
        new = form.cleaned_data["new_password1"]
        if not passwords.change(user, new, keep=user.live_session_uuid, request=self.request):
            form.add_error(None, gettext("Your password has just been changed elsewhere. Nothing was changed here."))
            return self.form_invalid(form)
        update_session_auth_hash(self.request, user)
        return HttpResponseRedirect(self.get_success_url())


class Changed(Private, views.PasswordChangeDoneView):
    template_name = "accounts/password_changed.html"


@method_decorator(login_not_required, name="dispatch")
class Reset(Private, Limited, views.PasswordResetView):
    """Asks for an address. The answer and its time are the same whether it is somebody's or not."""

    form_class = ResetRequestForm
    template_name = "accounts/password_reset.html"

    def form_valid(self, form: PasswordResetForm) -> HttpResponse:
        passwords.send_reset(form.cleaned_data["email"])
        return HttpResponseRedirect(self.get_success_url())


@method_decorator(login_not_required, name="dispatch")
class ResetSent(Private, views.PasswordResetDoneView):
    template_name = "accounts/password_reset_sent.html"


@method_decorator(login_not_required, name="dispatch")
class ResetConfirm(Private, views.PasswordResetConfirmView):
    """Where the mail's link leads. Django moves its token into the browser session: the form's address has none to leak.

    Whoever sets the password is not signed in by it, and all the person's sessions end.
    """

    template_name = "accounts/password_reset_confirm.html"

    def get_user(self, uidb64: str) -> User | None:
        user = super().get_user(uidb64)
        return user if isinstance(user, User) and passwords.may_reset(user) else None

    def form_valid(self, form: "SetPasswordForm[Any]") -> HttpResponse:
        user, new = cast(User, self.user), form.cleaned_data["new_password1"]
        if not passwords.change(user, new, keep=None, request=self.request):
            self.validlink = False  # the same link, a moment earlier
            return self.render_to_response(self.get_context_data())
        del self.request.session[views.INTERNAL_RESET_SESSION_TOKEN]
        return HttpResponseRedirect(self.get_success_url())


@method_decorator(login_not_required, name="dispatch")
class ResetComplete(Private, views.PasswordResetCompleteView):
    template_name = "accounts/password_reset_complete.html"


def admin_change(request: HttpRequest, extra_context: Any = None) -> HttpResponse:
    """The admin's own page has no limit of attempts: ours stands in for it."""
    return redirect("password_change")
