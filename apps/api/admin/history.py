"""What the lists of things that happened have in common: read-only, as fast with many rows, each leading to its caller and its entry."""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince, timeuntil
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.activity.admin import ReadOnlyAdmin
from apps.api import key_text, registry
from apps.api.models import ApiKey

_PUBLIC_ID = re.compile(rf"[0-9A-Za-z]{{{key_text.ID_LENGTH}}}")


class ToolFilter(admin.SimpleListFilter):
    """By tool; the names come from the registry, since the table may have millions of rows."""

    title = _("tool")
    parameter_name = "tool"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [(name, name) for name in sorted({tool.name for tool in registry.current().declared() if tool.is_write})]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(tool=self.value()) if self.value() else queryset


class HistoryAdmin(ReadOnlyAdmin):
    """Rows with a caller, a tool, a request and a beginning. What hides a value (a code, a hash, an answer) is in no field of it."""

    ordering = ("-created_at", "pk")
    search_fields = ("request_id",)  # makes the box appear; get_search_results decides

    class Media:
        css = {"all": ("css/api-admin.css",)}

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Whole identifiers only."""
        term = search_term.strip()
        return (queryset.filter(self.found_by(term)), False) if term else (queryset, False)

    def found_by(self, term: str) -> Q:
        """The row's uuid, its request, and the caller by the id of a key or the uuid of a key's family."""
        found = Q(request_id=term)
        if (uuid := _uuid(term)) is not None:
            found |= Q(pk=uuid) | Q(caller=f"key:{uuid}")
        if _PUBLIC_ID.fullmatch(term):
            family = ApiKey.objects.filter(public_id=term).values_list("family", flat=True).first()
            found |= Q(caller=f"key:{family}")
        return found

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        # The rest of the row's name stands below, and is long.
        return super().render_change_form(request, {**context, "subtitle": context["original"].tool}, *args, **kwargs)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What the activity log knows of it."""
        return HttpResponseRedirect(f"{reverse('admin:activity_entry_changelist')}?q={object_id}")

    @admin.display(description=_("called by"), ordering="caller")
    def called_by(self, row: Any) -> SafeString:
        """The key's name, leading to all keys of its family; a visitor by the beginning of what tells visitors apart."""
        kind, _colon, name = row.caller.partition(":")
        if kind != "key":
            visitor = gettext("visitor %(token)s") % {"token": name[:8]} if name else gettext("a visitor")
            return format_html("{}", visitor)
        page = reverse("admin:api_apikey_changelist")
        return format_html('<a href="{}?family={}">{}</a>', page, name, row.actor_name or gettext("a key"))

    @admin.display(description=_("request"), ordering="request_id")
    def request_entry(self, row: Any) -> SafeString | str:
        """Its id, leading to the entries of the request."""
        if not row.request_id:
            return self.get_empty_value_display()
        page = reverse("admin:activity_entry_changelist")
        return format_html('<a href="{}?q={}"><code>{}</code></a>', page, row.request_id, row.request_id)

    @admin.display(description=_("request"), ordering="request_id")
    def request_link(self, row: Any) -> SafeString | str:
        """As above, in a column."""
        if not row.request_id:
            return self.get_empty_value_display()
        page = reverse("admin:activity_entry_changelist")
        return format_html('<a href="{}?q={}">{}</a>', page, row.request_id, cut(row.request_id, 8))

    @admin.display(description=_("begun"), ordering="created_at")
    def age(self, row: Any) -> SafeString:
        return moment(row.created_at)


def cut(text: str, length: int) -> SafeString:
    """An identifier in a column, whole where the pointer rests."""
    shown = text if len(text) <= length + 2 else f"{text[:length]}…"
    return format_html('<code class="th-key" title="{}">{}</code>', text, shown)


def moment(when: datetime) -> SafeString:
    """How long ago, or in how long; the whole time where the pointer rests."""
    now = timezone.now()
    if when <= now:
        text = gettext("%(span)s ago") % {"span": timesince(when, now, depth=1)}
    else:
        text = gettext("in %(span)s") % {"span": timeuntil(when, now, depth=1)}
    return format_html('<span class="th-moment" title="{}">{}</span>', exactly(when), text)


def exactly(when: datetime) -> str:
    return formats.date_format(timezone.localtime(when), "DATETIME_FORMAT")


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
