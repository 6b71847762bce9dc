"""People and their live sessions in the admin site, which signs in by our page."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.text import Truncator
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from apps.accounts import admin_referrals, impersonation, roles, sessions
from apps.accounts.forms import PersonChangeForm, PersonCreationForm
from apps.accounts.models import LiveSession, User
from apps.accounts.views import passwords, sign_in

# PS-7 holds for every door. Assigned here, so that it doesn't hang on the order of URL patterns.
admin.site.login = sign_in.admin_sign_in  # type: ignore[method-assign]  # the site's documented way to replace it
admin.site.password_change = passwords.admin_change  # type: ignore[method-assign, assignment]  # as above

__all__ = ["PersonAdmin", "admin_referrals"]  # Django looks into this module alone


@admin.register(User)
class PersonAdmin(UserAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    form = PersonChangeForm
    add_form = PersonCreationForm
    list_display = ("email", "name", "is_active", "is_staff", "is_superuser", "email_confirmed_at", "last_login")
    list_filter = (
        "is_active",
        "is_staff",
        "is_superuser",
        "groups",
        ("email_confirmed_at", admin.EmptyFieldListFilter),
        ("referral_code", admin.EmptyFieldListFilter),
        "joined_at",
    )
    search_fields = ("email", "name", "referral_code")
    ordering = ("email", "pk")
    readonly_fields = ("joined_at", "last_login")
    filter_horizontal = ("groups", "user_permissions")
    fieldsets = (
        (None, {"fields": ("email", "password", "name")}),
        (_("Account"), {"fields": ("is_active", "email_confirmed_at", "referral_code")}),
        (_("Rights"), {"fields": ("is_staff", "is_superuser", "groups", "user_permissions")}),
        (_("Times"), {"fields": ("joined_at", "last_login")}),
    )
    add_fieldsets = (
        (None, {"classes": ("wide",), "fields": ("email", "name", "usable_password", "password1", "password2")}),
    )

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> User | None:
        person = super().get_object(request, object_id, from_field)
        if person is not None and request.method == "POST" and transaction.get_connection().in_atomic_block:
            # The whole row is written back: what changes between the look and the save would be undone.
            person = User.objects.select_for_update().get(pk=person.pk)
        if person is not None and isinstance(request.user, User):
            person.changed_by, person.changed_in = request.user, request
        return person

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        person, operator = kwargs.get("obj"), request.user
        if person is not None and isinstance(operator, User):
            context["may_impersonate"] = impersonation.may_start(hijacker=operator, hijacked=person)
        return super().render_change_form(request, context, *args, **kwargs)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """An owner is changed by owners alone: whoever may set their password would be one."""
        return super().has_change_permission(request, obj) and _may_touch(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """As above."""
        return super().has_delete_permission(request, obj) and _may_touch(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Rights are given by owners: nobody gives themselves more than they have."""
        fields = super().get_readonly_fields(request, obj)
        return fields if _is_owner(request) else (*fields, "is_staff", "is_superuser", "groups", "user_permissions")

    def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
        # One's own is changed on the page that asks for the old one, and that keeps the session.
        person = self.get_object(request, unquote(id))
        if person is not None and person.pk == request.user.pk:
            return HttpResponseRedirect(reverse("admin:password_change"))
        with transaction.atomic():
            return super().user_change_password(request, id, form_url)

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[str]]:
        # Nobody may delete a session by itself, but a person goes with theirs.
        listed, counts, forbidden, protected = super().get_deleted_objects(objs, request)
        return listed, counts, forbidden - {LiveSession._meta.verbose_name}, protected


def _is_owner(request: HttpRequest) -> bool:
    return bool(getattr(request.user, "is_superuser", False))


def _may_touch(request: HttpRequest, person: Any) -> bool:
    return _is_owner(request) or not getattr(person, "is_superuser", False)


admin.site.unregister(Group)


@admin.register(Group)
class RoleAdmin(GroupAdmin):
    """Deleting a role ends the sessions that act as it, in the name of whoever deletes it."""

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        roles.delete(obj, by=_by(request), request=request)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Group]) -> None:
        with transaction.atomic():
            for role in queryset.order_by("pk"):
                roles.delete(role, by=_by(request), request=request)


class StateFilter(admin.SimpleListFilter):
    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("live", _("live")), ("over", _("over"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        live = {"ended_at": None, "expires_at__gt": timezone.now()}
        if self.value() == "live":
            return queryset.filter(**live)
        return queryset.exclude(**live) if self.value() == "over" else queryset


@admin.register(LiveSession)
class LiveSessionAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """History: nothing is added, changed or deleted by hand; sessions are ended."""

    list_display = ("user", "impersonator", "acting_role", "state", "created_at", "ended_at", "ip", "browser")
    list_filter = (StateFilter, "end_reason", "created_at")
    search_fields = ("user__email", "user__name", "ip", "user_agent")
    list_select_related = ("user", "impersonator", "acting_role")
    ordering = ("-created_at", "pk")
    actions = ("end_sessions",)

    @admin.display(description=_("state"))
    def state(self, session: LiveSession) -> str:
        if session.ended_at is None and session.expires_at > timezone.now():
            return gettext("live")
        return session.get_end_reason_display() or str(sessions.Reason.EXPIRED.label)

    @admin.display(description=_("browser"))
    def browser(self, session: LiveSession) -> str:
        return Truncator(session.user_agent).chars(50)

    @admin.action(description=_("End these sessions"), permissions=["end"])
    def end_sessions(self, request: HttpRequest, queryset: QuerySet[LiveSession]) -> None:
        now, by = timezone.now(), _by(request)
        ended = sessions.end(queryset, reason=sessions.Reason.REVOKED, by=by, now=now, request=request)
        text = ngettext("%(count)d session ended.", "%(count)d sessions ended.", ended) % {"count": ended}
        self.message_user(request, text, messages.SUCCESS)

    def has_end_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("accounts.change_livesession")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def _by(request: HttpRequest) -> Any:
    return sessions.actor(request.user)  # type: ignore[arg-type]  # the admin site lets nobody else in
