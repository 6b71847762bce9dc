"""Rotating a key in the admin site (KY-4): the button and the action, the form that asks for the grace, the successor's text once."""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import acting, keys, people
from apps.api.admin import shown_once
from apps.api.key_fields import GraceForm
from apps.api.models import ApiKey


class RotatingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """What an admin of keys needs to rotate them, one at a time: each new text has to be carried to its machine."""

    def has_rotate_permission(self, request: HttpRequest) -> bool:
        """Who may change keys may replace them."""
        # A session that acts as one role is handed no key's text: a key is never narrowed.
        return super().has_change_permission(request) and not people.current().acts_as_role(request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.rotate_view)
        return [path("<uuid:pk>/rotate/", view, name="api_apikey_rotate"), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        key: ApiKey | None = context.get("original")
        can_rotate = key is not None and _refusal(key) is None and self.has_rotate_permission(request)
        more = {"can_rotate": can_rotate, "now": timezone.now()}
        return super().render_change_form(request, {**context, **more}, *args, **kwargs)

    @admin.action(description=_("Rotate this key"), permissions=["rotate"])
    def rotate_key(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Leads to the form, for one key."""
        chosen = list(queryset.order_by("pk").values_list("pk", flat=True)[:2])
        if len(chosen) == 1:
            return HttpResponseRedirect(reverse("admin:api_apikey_rotate", args=chosen))
        text = gettext("Choose one key: the text of its successor is shown once, and must be carried to its machine.")
        messages.warning(request, text)
        return None

    def rotate_view(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """Asks for the grace, then shows the successor's text. A reload finds a key that was rotated already."""
        if not self.has_rotate_permission(request):
            raise PermissionDenied
        key = self.get_queryset(request).select_related("owner", "successor").filter(pk=pk).first()
        if key is None:
            return HttpResponseRedirect(reverse("admin:api_apikey_changelist"))
        if (refused := _refusal(key)) is not None:
            return self._refuse(request, key, refused)
        form = GraceForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            return self._rotate(request, key, form.chosen())
        return self._ask_for_grace(request, key, form)

    def _rotate(self, request: HttpRequest, key: ApiKey, grace: timedelta) -> HttpResponse:
        try:
            successor, text = keys.rotate(key, grace=grace, by=request.user, **acting.of(request))
        except keys.Stale:  # between the look and the lock
            key.refresh_from_db()
            return self._refuse(request, key, _refusal(key) or gettext("This key was changed in the meantime."))
        except ValidationError as refusal:
            return self._refuse(request, key, " ".join(refusal.messages))
        key.refresh_from_db()
        title = gettext("Key rotated")
        return shown_once.page(self, request, successor, text, title=title, old=key, now=timezone.now())

    def _refuse(self, request: HttpRequest, key: ApiKey, text: str) -> HttpResponse:
        messages.warning(request, text)
        return HttpResponseRedirect(reverse("admin:api_apikey_change", args=[key.pk]))

    def _ask_for_grace(self, request: HttpRequest, key: ApiKey, form: GraceForm) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Rotate this key?"),
            "opts": self.opts,
            "media": self.media + form.media,
            "key": key,
            "form": form,
        }
        return TemplateResponse(request, "admin/api/apikey/rotate.html", context)


def _refusal(key: ApiKey) -> str | None:
    """Why the key has no successor to be given, None when it may have one."""
    if key.successor_id is not None:
        return gettext(
            "This key was rotated already. The text of its successor can't be shown again: if you did not keep it, rotate the "
            "successor."
        )
    if key.revoked_at is not None:
        return gettext("This key was revoked: there is nothing to rotate. Make a new one.")
    if key.expires_at is not None and key.expires_at <= timezone.now():
        return gettext("This key has expired: there is nothing to rotate. Give it more time first, or make a new one.")
    return None
