"""The forms of sign-in and of the people's admin pages."""

from typing import Any, ClassVar

from django.contrib.auth.forms import AdminUserCreationForm, AuthenticationForm, UserChangeForm
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.accounts import doors
from apps.accounts.models import User

TOO_MANY = "too_many_attempts"


class SignInForm(AuthenticationForm):
    """One text for every wrong log-in: an unknown address, a wrong password, a blocked person (PS-7).

    About the same time, too: Django hashes once in each case.
    """

    error_messages = {
        "invalid_login": _("The e-mail address or the password is not right."),
        "inactive": _("The e-mail address or the password is not right."),
        TOO_MANY: _("Too many attempts to sign in. Wait five minutes, then try again."),
    }
    wait: int | None = None

    def __init__(self, request: HttpRequest, *args: Any, **kwargs: Any) -> None:
        super().__init__(request, *args, **kwargs)
        self.visitor = request
        address, password = self.fields["username"], self.fields["password"]
        address.label = _("E-mail address")
        address.widget.attrs |= {"autocomplete": "username", "inputmode": "email", "spellcheck": "false"}
        # The first thing to hear after a refusal is why: the page then puts the focus on the summary.
        address.widget.attrs["autofocus"] = not self.is_bound
        password.label = _("Password")

    def clean(self) -> dict[str, Any]:
        account, password = self.cleaned_data.get("username"), self.cleaned_data.get("password")
        if account and password:
            # The cleaned address, as the look-up takes it: another spelling is not another account.
            self.wait = doors.knock(self.visitor, account.lower())
        if self.wait is not None:
            raise ValidationError(self.error_messages[TOO_MANY], code=TOO_MANY)
        return super().clean()


class PersonCreationForm(AdminUserCreationForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = User
        fields = ("email", "name")


class PersonChangeForm(UserChangeForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = User
        fields = "__all__"
        field_classes: ClassVar[dict[str, Any]] = {}

    # What the person may set meanwhile, by a link or a code, and what another operator may: an open page is not to undo it.
    KEPT = ("email_confirmed_at", "referral_code", "email", "is_active", "is_staff", "is_superuser")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.fields.keys() & set(self.KEPT):
            self.fields[name].show_hidden_initial = True

    def clean(self) -> dict[str, Any] | None:
        """Another address is not confirmed, unless the operator says so in the same form."""
        cleaned = super().clean() or self.cleaned_data
        for name in cleaned.keys() & set(self.KEPT) - set(self.changed_data):
            if self._was_shown(name):
                cleaned[name] = getattr(self.instance, name)
        email = str(cleaned.get("email", "")).lower()
        if email != self.instance.email and "email_confirmed_at" not in self.changed_data:
            cleaned["email_confirmed_at"] = None
        return cleaned

    def _was_shown(self, name: str) -> bool:
        """The form says what the page showed: whoever sends none means what they send."""
        widget = self.fields[name].hidden_widget()
        return not widget.value_omitted_from_data(self.data, self.files, self.add_initial_prefix(name))
