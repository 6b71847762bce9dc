"""Idempotency records in the admin site: what runs, what waits, and the outcomes that nobody knows. Never an input or an answer."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import lifesigns
from apps.api.admin import history
from apps.api.admin.settling import SettlingAdmin
from apps.api.lifesigns import Work
from apps.api.models import IdempotencyRecord, Lifesign

State = IdempotencyRecord.State

# The first is what somebody comes for at night.
ORDER = (State.UNKNOWN, State.RUNNING, State.WAITING, State.DONE)

# So much of a key tells it from others; it may have 255 characters.
KEY_SHOWN = 20


class StateFilter(admin.SimpleListFilter):
    """Unknown outcomes first."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [(state.value, state.label) for state in ORDER]

    def queryset(self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord]) -> QuerySet[IdempotencyRecord]:
        return queryset.filter(state=self.value()) if self.value() in State.values else queryset


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(SettlingAdmin):
    """Read-only, but for the operator's word on an unknown outcome."""

    list_display = ("tool", "shown_state", "age", "called_by", "key_link", "attempt", "finished", "request_link")
    list_filter = (StateFilter, history.ToolFilter, "external", "created_at")
    search_help_text = _("A whole idempotency key, or a whole id: of the record, the request, a key or a key's family.")
    actions = ("settle_as_happened", "settle_as_not_happened")
    fields = (
        "tool", "shown_state", "called_by", "shown_key", "attempt", "external", "created_at", "finished_at", "status",
        "approval_link", "request_entry", "uuid",
    )  # fmt: skip
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[IdempotencyRecord]:
        """With the last sign of life of the running attempt, where signs are rows."""
        signs = Lifesign.objects.filter(kind="call", uuid=OuterRef("uuid"), attempt=OuterRef("attempt"))
        records: QuerySet[IdempotencyRecord] = super().get_queryset(request)
        return records.annotate(seen_at=Subquery(signs.values("seen_at")[:1]))

    def found_by(self, term: str) -> Q:
        return super().found_by(term) | Q(key=term)

    @admin.display(description=_("state"), ordering="state")
    def shown_state(self, record: Any) -> SafeString:
        state = State(record.state)
        shown = format_html('<span class="th-state th-{}">{}</span>', state.value, state.label)
        if state != State.RUNNING:
            return shown
        return format_html('{} <span class="th-quiet th-line">{}</span>', shown, _life(record))

    @admin.display(description=_("idempotency key"), ordering="key")
    def shown_key(self, record: IdempotencyRecord) -> SafeString:
        if record.is_own:
            return format_html('<span class="th-quiet">{}</span>', gettext("none came"))
        return format_html('<code class="th-key">{}</code>', record.key)

    @admin.display(description=_("idempotency key"), ordering="key")
    def key_link(self, record: IdempotencyRecord) -> SafeString:
        """As above, in a column."""
        return self.shown_key(record) if record.is_own else history.cut(record.key, KEY_SHOWN)

    @admin.display(description=_("approval"))
    def approval_link(self, record: IdempotencyRecord) -> SafeString | str:
        """What this call waits for, or what its answer comes from."""
        if record.approval_id is None:
            return self.get_empty_value_display()
        page = reverse("admin:api_approval_change", args=[record.approval_id])
        return format_html('<a href="{}"><code>{}</code></a>', page, record.approval_id)

    @admin.display(description=_("finished"), ordering="finished_at")
    def finished(self, record: IdempotencyRecord) -> SafeString | str:
        return history.moment(record.finished_at) if record.finished_at else self.get_empty_value_display()


def _life(record: Any) -> str:
    """Since when it runs, and the last that was heard of it."""
    now = timezone.now()
    since = gettext("first asked %(span)s ago") % {"span": timesince(record.created_at, now, depth=1)}
    seen: datetime | None = record.seen_at
    if seen is None:  # no row: where signs are in memory, this process may know
        is_alive = lifesigns.is_alive(Work(kind="call", uuid=record.uuid, attempt=record.attempt))
    else:
        is_alive = now - seen < timedelta(seconds=lifesigns.lease_seconds())
    if is_alive:
        heard = gettext("gives signs of life")
    elif seen is not None:
        heard = gettext("no sign of life for %(span)s") % {"span": timesince(seen, now, depth=1)}
    else:
        heard = gettext("no sign of life")
    return f"{since}; {heard}"
