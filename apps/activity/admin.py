"""The log in the admin site: filters, search by exact ids, one entry whole. Nothing can be added, changed, removed."""

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar
from uuid import UUID

from django.contrib import admin
from django.core.paginator import Paginator
from django.db import connections
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from apps.activity import log
from apps.activity.models import Entry

# More rows than this are not counted: filters find the rest.
COUNTED = 10_000


class BoundedPaginator(Paginator):  # type: ignore[type-arg]  # generic in the stubs only
    """Counts to COUNTED and stops, so that a page costs the same whether the log is short or long."""

    @cached_property
    def count(self) -> int:
        """The number of rows, at most COUNTED."""
        rows: Any = self.object_list
        return int(rows.order_by()[:COUNTED].count())


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """What the lists of rows share that nobody writes by hand, superusers neither: as fast when there are millions of them."""

    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = BoundedPaginator

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Never: what goes, goes by time."""
        return False


class _DistinctFilter(admin.SimpleListFilter):
    """The values of one indexed column: each is found by one step in the index, whatever the number of rows."""

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, str]]:
        return [(value, value) for value in _distinct(self.parameter_name or "") if value]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Entry]) -> QuerySet[Entry]:
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class ActionFilter(_DistinctFilter):
    """By action."""

    title = _("action")
    parameter_name = "action"


class ModuleFilter(_DistinctFilter):
    """By module."""

    title = _("module")
    parameter_name = "module"


def _distinct(column: str) -> list[str]:
    connection = connections[Entry.objects.db]
    name, table = connection.ops.quote_name(column), connection.ops.quote_name(Entry._meta.db_table)
    statement = (
        f"WITH RECURSIVE step(value) AS (SELECT min({name}) FROM {table} UNION ALL "  # noqa: S608  # names of our own, quoted
        f"SELECT (SELECT min({name}) FROM {table} WHERE {name} > step.value) FROM step WHERE step.value IS NOT NULL) "
        "SELECT value FROM step WHERE value IS NOT NULL"
    )
    with connection.cursor() as cursor:
        cursor.execute(statement)
        return [row[0] for row in cursor.fetchall()]


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    """Read-only, for superusers too."""

    list_display = ("time", "action", "actor", "target", "module", "mode", "ip")
    list_filter: ClassVar = ("created_at", ActionFilter, ModuleFilter, "mode", "actor_kind")
    ordering = ("-created_at", "-uuid")
    search_fields = ("request_id",)  # makes the box appear; get_search_results decides
    search_help_text = _("An exact id: of the entry, the request, the actor or the resource.")
    fields: ClassVar = (
        "uuid", "time", "action", "module", "mode", "actor_kind", "actor_name", "actor_uuid", "resource_type",
        "resource_uuid", "target", "request_id", "ip", "details", "mac", "mac_key_id", "intact",
    )  # fmt: skip
    readonly_fields = fields

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Entry], search_term: str
    ) -> tuple[QuerySet[Entry], bool]:
        """Whole identifiers only: each is an index look-up."""
        term = search_term.strip()
        if not term:
            return queryset, False
        found = Q(request_id=term) | Q(actor_uuid=term) | Q(resource_uuid=term)
        if (uuid := _uuid(term)) is not None:
            found |= Q(uuid=uuid)
        return queryset.filter(found), False

    @admin.display(description=_("actor"))
    def actor(self, entry: Entry) -> str:
        """The name, or what kind of actor it was."""
        return entry.actor_name or entry.get_actor_kind_display()

    @admin.display(description=_("time"), ordering="created_at")
    def time(self, entry: Entry) -> str:
        """To the millisecond: what follows what is the point of a log."""
        return timezone.localtime(entry.created_at).isoformat(sep=" ", timespec="milliseconds")

    @admin.display(description=_("details"))
    def details(self, entry: Entry) -> SafeString:
        """The metadata, indented."""
        return format_html("<pre>{}</pre>", json.dumps(entry.metadata, indent=2, ensure_ascii=False, sort_keys=True))

    @admin.display(description=_("intact"), boolean=True)
    def intact(self, entry: Entry) -> bool:
        """Whether the entry is as it was written."""
        return log.verify(entry)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
