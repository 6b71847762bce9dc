"""A plain page for the settings: every one with its value, default and meaning, saved together."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext, ngettext

from apps.api import settings_store
from apps.api.admin import acting
from apps.api.admin.settings_form import SettingsForm
from apps.api.models import Setting


@admin.register(Setting)
class SettingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """The list of rows is the one page that there is."""

    def get_urls(self) -> list[URLPattern]:
        return [path("", self.admin_site.admin_view(self.changelist_view), name="api_setting_changelist")]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Rows come and go with their values."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Setting | None = None) -> bool:
        """As above."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Setting | None = None) -> bool:
        """There is no page that only shows them."""
        return self.has_change_permission(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if not self.has_change_permission(request):
            raise PermissionDenied
        rows = settings_store.rows()
        form = SettingsForm(request.POST or None, rows=rows)
        if request.method == "POST" and form.is_valid():
            return self._save(request, form)
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Settings of the API"),
            "opts": self.opts,
            "form": form,
            **(extra_context or {}),
        }
        return TemplateResponse(request, "admin/api/setting/settings.html", context)

    def _save(self, request: HttpRequest, form: SettingsForm) -> HttpResponse:
        try:
            names = settings_store.save(form.chosen(), seen=form.cleaned_data["seen"], **acting.of(request))
        except settings_store.Changed as changed:
            text = gettext(
                "Nothing was saved: somebody else changed %(names)s in the meantime. These are the values now."
            )
            messages.error(request, text % {"names": ", ".join(changed.names)})
            return HttpResponseRedirect(request.path)
        if names:
            text = ngettext(
                "%(count)d setting changed: %(names)s.", "%(count)d settings changed: %(names)s.", len(names)
            )
            messages.success(request, text % {"count": len(names), "names": ", ".join(names)})
        else:
            messages.info(request, gettext("Nothing was changed."))
        return HttpResponseRedirect(request.path)
