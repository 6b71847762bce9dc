"""A person (PS-1), their live sessions (PS-2) and referral codes. Roles are Django's groups; the owner role is `is_superuser`."""

import secrets
import uuid
from datetime import datetime
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.contrib.auth import hashers
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.models import Group, PermissionsMixin
from django.db import models, transaction
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.http import HttpRequest
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class LowerCaseEmailField(models.EmailField):  # type: ignore[type-arg]  # generic in the stubs only
    """An address kept in lower case, so that `unique` and every look-up ignore case and still use the plain index."""

    def to_python(self, value: Any) -> Any:
        value = super().to_python(value)
        return value.lower() if isinstance(value, str) else value

    def get_prep_value(self, value: Any) -> Any:
        value = super().get_prep_value(value)
        return value.lower() if isinstance(value, str) else value

    def pre_save(self, model_instance: models.Model, add: bool) -> Any:  # noqa: FBT001 - Django's signature
        value = self.to_python(super().pre_save(model_instance, add))
        setattr(model_instance, self.attname, value)
        return value


# What stands with the first people of an installation, who make the codes for the others. Too short to be a code.
OWNERS_REFERRAL = "-"


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Without a password the person can't sign in until one is set."""
        if not email:
            raise ValueError("A person needs an e-mail address.")
        user = self.model(email=email, **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> "User":
        """Whoever may run commands on the server vouches for the person: no gate shuts them out."""
        owner = {
            "is_staff": True,
            "is_superuser": True,
            "email_confirmed_at": timezone.now(),
            "referral_code": OWNERS_REFERRAL,
        }
        return self.create_user(email, password, **(owner | fields))


class User(AbstractBaseUser, PermissionsMixin):
    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    email = LowerCaseEmailField(_("e-mail address"), unique=True)
    name = models.CharField(_("name"), max_length=150, blank=True)
    is_active = models.BooleanField(
        _("active"),
        default=True,
        help_text=_("Off blocks the person: no signing in, their sessions end, their keys are refused."),
    )
    is_staff = models.BooleanField(_("staff"), default=False, help_text=_("May open the administration."))
    email_confirmed_at = models.DateTimeField(_("e-mail confirmed at"), null=True, blank=True)
    referral_code = models.CharField(_("referral code"), max_length=64, blank=True)
    joined_at = models.DateTimeField(_("joined at"), default=timezone.now, editable=False)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    # Never stored, set by whoever loads the row: the live session that the person is here with, who changes them, and
    # in which request.
    live_session: "LiveSession | None" = None
    live_session_uuid: uuid.UUID | None = None
    changed_by: "User | None" = None
    changed_in: HttpRequest | None = None
    _password: str | None  # Django's: the new password's text until save() is over

    objects: ClassVar[UserManager] = UserManager()

    class Meta:
        verbose_name = _("person")
        verbose_name_plural = _("people")
        permissions = [("impersonate_user", "Can look at the site as another person")]
        constraints = [
            models.CheckConstraint(condition=Q(email=Lower("email")), name="accounts_user_email_in_lower_case"),
        ]

    def __str__(self) -> str:
        return str(self.email)

    def get_full_name(self) -> str:
        return self.name or str(self.email)

    def set_unusable_password(self) -> None:
        super().set_unusable_password()
        self._password = ""  # as a new one: what follows is the same

    def check_password(self, raw_password: str | None) -> bool:
        """Django's, but a hash that is due for an upgrade is replaced by one conditional update: a password that was changed at this moment
        stays, and an old one never comes back."""
        return hashers.check_password(raw_password, self.password, self._upgrade)

    async def acheck_password(self, raw_password: str | None) -> bool:
        """The same."""
        return await sync_to_async(self.check_password)(raw_password)

    def _upgrade(self, raw: str) -> None:
        seen, new = self.password, hashers.make_password(raw)
        rows = User.objects.filter(pk=self.pk)
        if not rows.filter(password=seen).update(password=new):
            # Another sign-in was faster with the same one, or the password is another one now: then `sessions.start` refuses.
            now = rows.values_list("password", flat=True).first()
            new = now if now and hashers.check_password(raw, now) else seen
        self.password = new

    def save(self, *args: Any, **kwargs: Any) -> None:
        # What follows a new password (apps.accounts.passwords) is saved with it or not at all.
        with transaction.atomic(using=kwargs.get("using")):
            super().save(*args, **kwargs)


class LiveSession(models.Model):
    """One signed-in browser. The row, not the browser's cookie, decides whether the session is live."""

    class EndReason(models.TextChoices):
        SIGNED_OUT = "signed_out", _("signed out")
        EXPIRED = "expired", _("expired")
        REVOKED = "revoked", _("ended by an administrator")
        PASSWORD_CHANGED = "password_changed", _("password changed")
        PASSWORD_RESET = "password_reset", _("password reset")
        BLOCKED = "blocked", _("account blocked")
        ENDED_BY_OWNER = "ended_by_owner", _("ended by the person")
        ROLE_REMOVED = "role_removed", _("role removed")
        IMPERSONATING = "impersonating", _("went on as somebody else")
        IMPERSONATION_ENDED = "impersonation_ended", _("impersonation ended")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="live_sessions", verbose_name=_("person"))
    created_at = models.DateTimeField(_("started at"), default=timezone.now)
    expires_at = models.DateTimeField(_("expires at"))
    ended_at = models.DateTimeField(_("ended at"), null=True, blank=True)
    end_reason = models.CharField(_("why it ended"), max_length=20, choices=EndReason, blank=True)
    ip = models.GenericIPAddressField(_("address"), null=True, blank=True)
    user_agent = models.CharField(_("browser"), max_length=300, blank=True)
    # Without its role, or without its mark of an impersonation, an open session would be worth more than before. So the
    # database refuses to forget a role that a session names: apps.accounts.roles first ends them and takes it off them.
    acting_role = models.ForeignKey(
        Group, on_delete=models.DO_NOTHING, null=True, blank=True, related_name="+", verbose_name=_("acts as")
    )
    impersonator = models.ForeignKey(
        User, on_delete=models.CASCADE, null=True, blank=True, related_name="+", verbose_name=_("impersonated by")
    )

    class Meta:
        verbose_name = _("live session")
        verbose_name_plural = _("live sessions")
        indexes = [
            models.Index(fields=["user"], condition=Q(ended_at=None), name="accounts_session_open_by_user"),
            models.Index(fields=["expires_at"], condition=Q(ended_at=None), name="accounts_session_open_by_time"),
            models.Index(fields=["-created_at", "id"], name="accounts_session_newest"),
        ]
        constraints = [
            models.CheckConstraint(
                condition=Q(ended_at=None, end_reason="") | (Q(ended_at__isnull=False) & ~Q(end_reason="")),
                name="accounts_session_end_has_a_reason",
            ),
            models.CheckConstraint(
                condition=Q(expires_at__gt=F("created_at")), name="accounts_session_expires_after_start"
            ),
            models.CheckConstraint(
                condition=Q(impersonator=None) | ~Q(impersonator=F("user")),
                name="accounts_session_impersonates_another",
            ),
        ]

    def __str__(self) -> str:
        return str(self.id)


# Nothing that looks like something else.
_LETTERS = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"


def new_referral_code() -> str:
    """12 letters and digits, about 59 bits."""
    return "".join(secrets.choice(_LETTERS) for _ in range(12))


class ReferralCodes(models.QuerySet["ReferralCode"]):
    def usable(self, now: datetime) -> "ReferralCodes":
        """Switched on, in time, and not used up."""
        in_time = Q(expires_at=None) | Q(expires_at__gt=now)
        return self.filter(in_time, Q(most_uses=None) | Q(uses__lt=F("most_uses")), is_active=True)


class ReferralCode(models.Model):
    """A code that people give when they come; `User.referral_code` keeps it. History: switched off, never deleted."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    code = models.CharField(
        _("code"),
        max_length=64,
        unique=True,
        default=new_referral_code,
        help_text=_("Letters and digits. Case, spaces and hyphens don't matter to whoever types it."),
    )
    note = models.CharField(_("note"), max_length=200, blank=True, help_text=_("Whom or what it is for."))
    most_uses = models.PositiveIntegerField(
        _("most uses"), null=True, blank=True, help_text=_("How many people may give it. Empty: any number.")
    )
    uses = models.PositiveIntegerField(_("uses"), default=0, editable=False)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True, help_text=_("Empty: never."))
    is_active = models.BooleanField(_("active"), default=True, help_text=_("Off: nobody can give it any more."))
    created_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("created by")
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    objects = ReferralCodes.as_manager()

    class Meta:
        verbose_name = _("referral code")
        verbose_name_plural = _("referral codes")
        indexes = [models.Index(fields=["-created_at", "id"], name="accounts_referral_newest")]
        constraints = [
            models.CheckConstraint(
                condition=Q(code__regex=r"^[0-9A-Z]{4,64}$"),
                name="accounts_referral_code_spelling",
                violation_error_message=_("A code has 4 to 64 letters from A to Z and digits."),
            ),
        ]

    def __str__(self) -> str:
        return self.code

    @property
    def is_used_up(self) -> bool:
        return self.most_uses is not None and self.uses >= self.most_uses

    @staticmethod
    def spelled(text: str) -> str:
        """The spelling under which a code is kept, of whatever somebody types."""
        return "".join(text.replace("-", "").split()).upper()
