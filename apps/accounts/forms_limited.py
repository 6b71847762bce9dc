"""The forms of the pages with a limit of attempts (`apps.accounts.doors`)."""

from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm, PasswordResetForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from apps.accounts import doors
from apps.accounts.forms import TOO_MANY


class LimitedForm(forms.Form):
    """Knows its request. After `count` has refused, `wait` is the number of seconds until the next attempt."""

    wait: int | None = None

    def __init__(self, *args: Any, visitor: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.visitor = visitor

    def count(self, account: str, limit: doors.Limit) -> None:
        """Counts an attempt; ValidationError when there were too many."""
        self.wait = doors.knock(self.visitor, account, limit)
        if self.wait is None:
            return
        minutes = -(-self.wait // 60)
        text = ngettext(
            "Too many attempts. Wait %(minutes)d minute, then try again.",
            "Too many attempts. Wait %(minutes)d minutes, then try again.",
            minutes,
        )
        raise ValidationError(text % {"minutes": minutes}, code=TOO_MANY)


class ChangePasswordForm(LimitedForm, PasswordChangeForm):
    """Django's. An attempt counts before the old password is looked at, so that nobody guesses on at it."""

    def clean_old_password(self) -> str:
        self.count(str(self.user.pk), doors.OLD_PASSWORD)
        return super().clean_old_password()


class ResetRequestForm(LimitedForm, PasswordResetForm):
    """Django's. Whether the address is somebody's changes nothing that a visitor could see."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        email = self.fields["email"]
        email.label = _("E-mail address")
        email.widget.attrs |= {"spellcheck": "false", "autofocus": not self.is_bound}

    def clean_email(self) -> str:
        # As the look-up takes it: another spelling is not another account.
        email = str(self.cleaned_data["email"]).lower()
        self.count(email, doors.RESET)
        return email


class SendEmailForm(LimitedForm):
    """One button: a mail to confirm the address."""

    def clean(self) -> dict[str, Any]:
        self.count(str(self.visitor.user.pk), doors.EMAIL)
        return self.cleaned_data


class ReferralForm(LimitedForm):
    """One text for every code that is not good: unknown, switched off, used up or expired."""

    WRONG = _("This code is not valid. Check how it is written, or ask for another one where you got it.")

    code = forms.CharField(label=_("Referral code"), max_length=100, error_messages={"max_length": WRONG})

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].widget.attrs |= {
            "autocomplete": "off",
            "autocapitalize": "characters",
            "spellcheck": "false",
            "autofocus": not self.is_bound,
        }

    def clean_code(self) -> str:
        self.count(str(self.visitor.user.pk), doors.REFERRAL)
        return str(self.cleaned_data["code"])
