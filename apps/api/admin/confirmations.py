"""Held calls in the admin site: who asked for what, and what became of it. Never a code, nor what is kept in its place."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from apps.api.admin import history
from apps.api.models import Confirmation

State = Confirmation.State


class StateFilter(admin.SimpleListFilter):
    """By the column of the same name."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return State.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Confirmation]) -> QuerySet[Confirmation]:
        now = timezone.now()
        match self.value():
            case State.WAITING:
                return queryset.filter(state=State.WAITING, expires_at__gt=now)
            case State.EXPIRED:
                return queryset.filter(Q(state=State.EXPIRED) | Q(state=State.WAITING, expires_at__lte=now))
            case State.USED | State.REJECTED as state:
                return queryset.filter(state=state)
            case _:
                return queryset


@admin.register(Confirmation)
class ConfirmationAdmin(history.HistoryAdmin):
    """Read-only."""

    list_display = ("tool", "true_state", "called_by", "age", "expires", "decided", "request_link")
    list_filter = (StateFilter, history.ToolFilter, "created_at")
    search_help_text = _("A whole id: of the confirmation, the request, a key or a key's family.")
    fields = ("tool", "true_state", "called_by", "created_at", "expires_at", "decided_at", "request_entry", "uuid")
    readonly_fields = fields

    @admin.display(description=_("state"))
    def true_state(self, row: Confirmation) -> SafeString:
        """Nobody writes down that a time is over: it shows."""
        is_over = row.state == State.WAITING and row.expires_at <= timezone.now()
        state = State.EXPIRED if is_over else State(row.state)
        return format_html('<span class="th-state th-{}">{}</span>', state.value, state.label)

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, row: Confirmation) -> SafeString:
        return history.moment(row.expires_at)

    @admin.display(description=_("decided"), ordering="decided_at")
    def decided(self, row: Confirmation) -> SafeString | str:
        return history.moment(row.decided_at) if row.decided_at else self.get_empty_value_display()
