"""Settings → API: one page that shows and changes what the gate is set to. Changes are looked at before they are saved."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path
from django.utils.translation import gettext

from apps.api import settings_store, switches
from apps.api.admin import settings_modules, settings_people, settings_table
from apps.api.admin import settings_words as words
from apps.api.admin.settings_form import SettingsForm
from apps.api.admin.settings_page import SettingsPage
from apps.api.models import Setting
from apps.api.settings_store import Changes


@admin.register(Setting)
class SettingAdmin(SettingsPage):
    """The list of rows is the one page that there is."""

    sheet = SettingsForm
    templates = "admin/api/setting"

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
        return self.settings_view(request)

    def described(self, changes: Changes) -> Iterable[Any]:
        """Box by box."""
        return words.describe(changes)

    def named(self, boxes: Mapping[str, Iterable[str]]) -> list[str]:
        return words.names(boxes)

    def is_overlooked(self, request: HttpRequest, form: Any) -> bool:
        """Whether it would stop people who are at work."""
        if not settings_people.GATES.keys() & form.wanted().keys():
            return False
        changes = settings_store.plan(form.wanted(), seen=form.rows, found=form.rows)
        return bool(settings_people.stopped(changes, _switches(settings_store.rows()), request.user))

    def asked(self, request: HttpRequest, changes: Changes, rows: Any) -> dict[str, Any]:
        return {
            "stopped": settings_people.stopped(changes, _switches(rows), request.user),
            "is_maintenance": changes.get("maintenance_mode", {}).get("new") is True,
        }

    def shown(self, request: HttpRequest, form: Any, rows: Any) -> dict[str, Any]:
        """The table as the stored settings make it."""
        now = _switches(rows)
        found = settings_people.find(request.GET["q"]) if "q" in request.GET else None
        wanted = request.GET.get("person", "") or (found.only if found else "")
        picked = settings_people.pick(wanted, now) if wanted else None
        return {
            "title": gettext("Settings → API"),
            "cards": settings_modules.cards(form),
            "gone_tools": settings_modules.gone_tools(form),
            "boxes": [*words.MODULES.values(), words.TOOLS],
            "is_maintenance": now.maintenance_mode,
            "picked": picked,
            "is_unknown": bool(wanted) and picked is None,
            "found": found,
            "heads": settings_table.heads(),
            "table": settings_table.rows(now, picked),
        }


def _switches(rows: dict[str, Any]) -> switches.Switches:
    """As the gate reads these rows, without another query."""
    return switches.parse(json.dumps(rows, sort_keys=True))
