"""Settings → API: one page that shows and changes what the gate is set to. Changes are looked at before they are saved."""

import json
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext

from apps.api import acting, people, settings_store, switches
from apps.api.admin import settings_modules, settings_people, settings_table
from apps.api.admin import settings_words as words
from apps.api.admin.settings_form import Damaged, SettingsForm
from apps.api.models import Setting
from apps.api.settings_store import Changed, Changes, Saved, Toggles, Wanted

# The message after saving names this many changes; the entry has them all.
NAMED = 12


@admin.register(Setting)
class SettingAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """The list of rows is the one page that there is. A POST is reviewed, saved, or goes back to the form, by the button."""

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
        if request.method != "POST":
            return self._shown(request, settings_store.rows())
        if people.current().is_impersonated(request):
            raise PermissionDenied(gettext("Whoever looks at the site as somebody else can't change anything."))
        return self._sent(request)

    def _sent(self, request: HttpRequest) -> HttpResponse:
        try:
            form = SettingsForm.sent(request.POST)
        except Damaged:
            messages.error(request, gettext("Nothing was saved: the form was damaged on its way. Here is a new one."))
            return self._shown(request, settings_store.rows(), status=400)
        if not form.is_valid():
            return self._shown(request, settings_store.rows(), form, status=400)
        if "save" in request.POST:
            return self._saved(request, form)
        return self._reviewed(request, form)

    def _reviewed(self, request: HttpRequest, form: SettingsForm) -> HttpResponse:
        rows, wanted = settings_store.rows(), form.wanted()
        try:
            changes = settings_store.plan(wanted, seen=form.rows, found=rows)
        except Changed as changed:
            return self._refused(request, changed, wanted, rows)
        if "back" in request.POST:
            return self._shown(request, rows, SettingsForm(rows=rows, changes=changes))
        if not changes:
            messages.info(request, gettext("Nothing is changed: every box and number is as it was."))
            return HttpResponseRedirect(request.get_full_path())
        return self._asked(request, form, changes, rows)

    def _asked(self, request: HttpRequest, form: SettingsForm, changes: Changes, rows: Any) -> HttpResponse:
        """The changes, one a line, with the button that saves them."""
        now = _switches(rows)
        context = {
            "title": gettext("What will change"),
            "lines": words.describe(changes),
            "sent": form.sent_fields(),
            "stopped": settings_people.stopped(changes, now, request.user),
            "is_overlooked": "save" in request.POST,
            "is_maintenance": changes.get("maintenance_mode", {}).get("new") is True,
        }
        return self._page(request, "review.html", context)

    def _saved(self, request: HttpRequest, form: SettingsForm) -> HttpResponse:
        wanted = form.wanted()
        if "knowing" not in request.POST and settings_people.GATES.keys() & wanted.keys():
            rows = settings_store.rows()
            changes = settings_store.plan(wanted, seen=form.rows, found=form.rows)
            if settings_people.stopped(changes, _switches(rows), request.user):
                return self._reviewed(request, form)
        try:
            saved = settings_store.save(wanted, seen=form.rows, **acting.of(request))
        except Changed as changed:
            return self._refused(request, changed, wanted, settings_store.rows())
        self._say(request, saved)
        return HttpResponseRedirect(request.get_full_path())

    def _refused(self, request: HttpRequest, changed: Changed, wanted: Wanted, rows: dict[str, Any]) -> HttpResponse:
        """The page as it is now, with those of the operator's changes that nobody else made or unmade."""
        text = gettext(
            "Nothing was saved. Somebody else changed this in the meantime: %(names)s. It is shown as it is now; "
            "your other changes are still filled in."
        )
        messages.error(request, text % {"names": ", ".join(words.names(changed.boxes))})
        kept = settings_store.plan(_without(wanted, changed), seen=rows, found=rows)
        return self._shown(request, rows, SettingsForm(rows=rows, changes=kept), status=409)

    def _say(self, request: HttpRequest, saved: Saved) -> None:
        if saved.entry is None:
            messages.info(request, gettext("Nothing is changed: every box and number is as it was."))
            return
        lines = [str(line) for line in words.describe(saved.changes)]
        more = len(lines) - NAMED
        lines = [*lines[:NAMED], *([gettext("and %(count)d more") % {"count": more}] if more > 0 else [])]
        text = format_html("{} {}.", gettext("Saved:"), "; ".join(lines))
        if request.user.has_perm("activity.view_entry"):
            address = reverse("admin:activity_entry_change", args=[saved.entry])
            text = format_html('{} <a href="{}">{}</a>', text, address, gettext("See the entry"))
        messages.success(request, text)

    def _shown(
        self, request: HttpRequest, rows: dict[str, Any], form: SettingsForm | None = None, *, status: int = 200
    ) -> HttpResponse:
        """The page: the form, and the table as the stored settings make it."""
        form, now = form or SettingsForm(rows=rows), _switches(rows)
        found = settings_people.find(request.GET["q"]) if "q" in request.GET else None
        wanted = request.GET.get("person", "") or (found.only if found else "")
        picked = settings_people.pick(wanted, now) if wanted else None
        context = {
            "title": gettext("Settings → API"),
            "form": form,
            "cards": settings_modules.cards(form),
            "gone_tools": settings_modules.gone_tools(form),
            "boxes": [*words.MODULES.values(), words.TOOLS],
            "is_maintenance": now.maintenance_mode,
            "is_impersonated": people.current().is_impersonated(request),
            "picked": picked,
            "is_unknown": bool(wanted) and picked is None,
            "found": found,
            "heads": settings_table.heads(),
            "table": settings_table.rows(now, picked),
        }
        return self._page(request, "settings.html", context, status=status)

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, f"admin/api/setting/{name}", whole, status=status)


def _switches(rows: dict[str, Any]) -> switches.Switches:
    """As the gate reads these rows, without another query."""
    return switches.parse(json.dumps(rows, sort_keys=True))


def _without(wanted: Wanted, changed: Changed) -> dict[str, Any]:
    """What is wanted but for the boxes and values that somebody else changed."""
    return {name: left for name, value in wanted.items() if (left := _left(value, changed.boxes.get(name))) is not None}


def _left(value: Any, boxes: frozenset[str] | None) -> Any:
    if boxes is None:
        return value
    if not isinstance(value, Toggles) or not boxes:
        return None
    return Toggles(added=value.added - boxes, removed=value.removed - boxes)
