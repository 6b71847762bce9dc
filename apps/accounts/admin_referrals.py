"""Referral codes in the admin site: made, switched off, and never deleted, since people's records name them."""

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.accounts import address, sessions
from apps.accounts.models import ReferralCode, User
from apps.activity import actions, log


class ReferralCodeForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    class Meta:
        model = ReferralCode
        fields = ("code", "note", "most_uses", "expires_at", "is_active")

    def clean_code(self) -> str:
        return ReferralCode.spelled(self.cleaned_data["code"])


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("good", _("good")), ("over", _("no longer good"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        good = ReferralCode.objects.usable(timezone.now()).values("pk")
        if self.value() == "good":
            return queryset.filter(pk__in=good)
        return queryset.exclude(pk__in=good) if self.value() == "over" else queryset


@admin.register(ReferralCode)
class ReferralCodeAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    form = ReferralCodeForm
    list_display = ("code", "note", "state", "used", "expires_at", "created_by", "created_at")
    list_filter = (StateFilter, "is_active", "created_at")
    list_select_related = ("created_by",)
    search_fields = ("code", "note", "created_by__email")
    search_help_text = _("A code, a note, or the address of whoever made it.")
    ordering = ("-created_at", "pk")
    readonly_fields = ("people", "created_by", "created_at")
    fieldsets = (
        (None, {"fields": ("code", "note")}),
        (_("Limits"), {"fields": ("most_uses", "expires_at", "is_active")}),
        (_("Use"), {"fields": ("people", "created_by", "created_at")}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Model | None = None) -> Any:
        return self.fieldsets if obj is not None else self.fieldsets[:2]

    def get_readonly_fields(self, request: HttpRequest, obj: Model | None = None) -> tuple[str, ...]:
        # Whoever has given it is found by it.
        return self.readonly_fields if obj is None else ("code", *self.readonly_fields)

    @admin.display(description=_("state"))
    def state(self, code: ReferralCode) -> str:
        if not code.is_active:
            return gettext("switched off")
        if code.expires_at is not None and code.expires_at <= timezone.now():
            return gettext("expired")
        return gettext("used up") if code.is_used_up else gettext("good")

    @admin.display(description=_("uses"), ordering="uses")
    def used(self, code: ReferralCode) -> str:
        return str(code.uses) if code.most_uses is None else f"{code.uses} / {code.most_uses}"

    @admin.display(description=_("people"))
    def people(self, code: ReferralCode) -> str:
        """How many gave it, and who."""
        address = reverse("admin:accounts_user_changelist") + "?" + urlencode({"q": code.code})
        return format_html('{} · <a href="{}">{}</a>', self.used(code), address, gettext("Show the people"))

    def save_model(self, request: HttpRequest, obj: ReferralCode, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        # Only what was edited: somebody may be using the code up at this moment.
        if change:
            obj.save(update_fields=form.changed_data)
        else:
            obj.created_by = cast(User, request.user)
            obj.save()
        if form.changed_data or not change:
            _record(request, obj, form.changed_data if change else None)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _record(request: HttpRequest, code: ReferralCode, changed: list[str] | None) -> None:
    """The note names it: the code itself opens a door."""
    log.write(
        action=actions.ACCOUNT_REFERRAL_CODE_CREATED if changed is None else actions.ACCOUNT_REFERRAL_CODE_CHANGED,
        mode=log.Mode.MANUAL,
        actor=sessions.actor(cast(User, request.user)),
        resource_type="referral_code",
        resource_uuid=str(code.pk),
        target=code.note,
        request_id=getattr(request, "request_id", ""),
        ip=address.of(request),
        metadata={} if changed is None else {"changed": changed},
    )
