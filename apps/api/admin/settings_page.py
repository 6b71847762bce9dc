"""A page of settings in the admin site: it shows the form, asks before it saves, and merges what two operators change."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext

from apps.api import acting, people, settings_store
from apps.api.admin.setting_sheet import Damaged, SettingSheet
from apps.api.settings_store import Changed, Changes, Saved, Toggles, Wanted

# The message after saving names this many changes; the entry has them all.
NAMED = 12


class SettingsPage(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """A POST is reviewed, saved, or goes back to the form, by the button. What a page has of its own is in the methods without a rule."""

    sheet: ClassVar[type[SettingSheet]]
    templates: ClassVar[str]

    def described(self, changes: Changes) -> Iterable[Any]:
        """The changes, one a line."""
        vocabulary = self.sheet.vocabulary
        return [vocabulary.line(name, **change) for name, change in changes.items()]

    def named(self, boxes: Mapping[str, Iterable[str]]) -> list[str]:
        """Settings, or boxes of them, that somebody else changed."""
        return [self.sheet.vocabulary.name(name) for name in boxes]

    def shown(self, request: HttpRequest, form: Any, rows: Any) -> dict[str, Any]:
        """What the page shows beside the form."""
        return {}

    def asked(self, request: HttpRequest, changes: Changes, rows: Any) -> dict[str, Any]:
        """What the review asks beside the changes."""
        return {}

    def is_overlooked(self, request: HttpRequest, form: Any) -> bool:
        """Whether something has to be said once more before it is saved."""
        return False

    def settings_view(self, request: HttpRequest) -> HttpResponse:
        if not self.has_change_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._shown(request, self._rows())
        if people.current().is_impersonated(request):
            raise PermissionDenied(gettext("Whoever looks at the site as somebody else can't change anything."))
        return self._sent(request)

    def _sent(self, request: HttpRequest) -> HttpResponse:
        try:
            form = self.sheet.sent(request.POST)
        except Damaged:
            messages.error(request, gettext("Nothing was saved: the form was damaged on its way. Here is a new one."))
            return self._shown(request, self._rows(), status=400)
        if not form.is_valid():
            return self._shown(request, self._rows(), form, status=400)
        if "save" in request.POST:
            return self._saved(request, form)
        return self._reviewed(request, form)

    def _reviewed(self, request: HttpRequest, form: SettingSheet) -> HttpResponse:
        rows, wanted = self._rows(), form.wanted()
        try:
            changes = self._plan(wanted, seen=form.rows, found=rows)
        except Changed as changed:
            return self._refused(request, changed, wanted, rows)
        if "back" in request.POST:
            return self._shown(request, rows, self.sheet(rows=rows, changes=changes))
        if not changes:
            messages.info(request, gettext("Nothing is changed: every box and number is as it was."))
            return HttpResponseRedirect(request.get_full_path())
        return self._asked(request, form, changes, rows)

    def _asked(self, request: HttpRequest, form: SettingSheet, changes: Changes, rows: Any) -> HttpResponse:
        """The changes, one a line, with the button that saves them."""
        context = {
            "title": gettext("What will change"),
            "lines": self.described(changes),
            "sent": form.sent_fields(),
            "is_overlooked": "save" in request.POST,
            **self.asked(request, changes, rows),
        }
        return self._page(request, "review.html", context)

    def _saved(self, request: HttpRequest, form: SettingSheet) -> HttpResponse:
        wanted = form.wanted()
        if "knowing" not in request.POST and self.is_overlooked(request, form):
            return self._reviewed(request, form)
        try:
            saved = settings_store.save(wanted, seen=form.rows, book=self.sheet.book, **acting.of(request))
        except Changed as changed:
            return self._refused(request, changed, wanted, self._rows())
        self._say(request, saved)
        return HttpResponseRedirect(request.get_full_path())

    def _refused(self, request: HttpRequest, changed: Changed, wanted: Wanted, rows: dict[str, Any]) -> HttpResponse:
        """The page as it is now, with those of the operator's changes that nobody else made or unmade."""
        text = gettext(
            "Nothing was saved. Somebody else changed this in the meantime: %(names)s. It is shown as it is now; "
            "your other changes are still filled in."
        )
        messages.error(request, text % {"names": ", ".join(self.named(changed.boxes))})
        kept = self._plan(_without(wanted, changed), seen=rows, found=rows)
        return self._shown(request, rows, self.sheet(rows=rows, changes=kept), status=409)

    def _say(self, request: HttpRequest, saved: Saved) -> None:
        if saved.entry is None:
            messages.info(request, gettext("Nothing is changed: every box and number is as it was."))
            return
        lines = [str(line) for line in self.described(saved.changes)]
        more = len(lines) - NAMED
        lines = [*lines[:NAMED], *([gettext("and %(count)d more") % {"count": more}] if more > 0 else [])]
        text = format_html("{} {}.", gettext("Saved:"), "; ".join(lines))
        if request.user.has_perm("activity.view_entry"):
            address = reverse("admin:activity_entry_change", args=[saved.entry])
            text = format_html('{} <a href="{}">{}</a>', text, address, gettext("See the entry"))
        messages.success(request, text)

    def _shown(
        self, request: HttpRequest, rows: dict[str, Any], form: Any = None, *, status: int = 200
    ) -> HttpResponse:
        """The page as the stored settings make it, with the form as it was filled in."""
        form = form or self.sheet(rows=rows)
        context = {
            "form": form,
            "is_impersonated": people.current().is_impersonated(request),
            **self.shown(request, form, rows),
        }
        return self._page(request, "settings.html", context, status=status)

    def _page(self, request: HttpRequest, name: str, context: dict[str, Any], *, status: int = 200) -> HttpResponse:
        whole = {**self.admin_site.each_context(request), "opts": self.opts, **context}
        return TemplateResponse(request, f"{self.templates}/{name}", whole, status=status)

    def _rows(self) -> dict[str, Any]:
        return settings_store.rows(book=self.sheet.book)

    def _plan(self, wanted: Wanted, *, seen: Mapping[str, Any], found: Mapping[str, Any]) -> Changes:
        return settings_store.plan(wanted, seen=seen, found=found, book=self.sheet.book)


def _without(wanted: Wanted, changed: Changed) -> dict[str, Any]:
    """What is wanted but for the boxes and values that somebody else changed."""
    return {name: left for name, value in wanted.items() if (left := _left(value, changed.boxes.get(name))) is not None}


def _left(value: Any, boxes: frozenset[str] | None) -> Any:
    if boxes is None:
        return value
    if not isinstance(value, Toggles) or not boxes:
        return None
    return Toggles(added=value.added - boxes, removed=value.removed - boxes)
