"""Approvals in the admin site: who asks for what, who said what, and what became of it. History; a word is given by `deciding` alone."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import approval_listing, approval_queue, approval_state, deciding
from apps.api.admin import history
from apps.api.admin.approving import ApprovingAdmin, session_of
from apps.api.models import Approval, Vote
from apps.api.pages import approvals_rows
from apps.api.people import Session

State = Approval.State


class StateFilter(admin.SimpleListFilter):
    """By the column of the same name: what no sweep has written yet counts as what it is by now."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return State.choices

    def queryset(self, request: HttpRequest, queryset: QuerySet[Approval]) -> QuerySet[Approval]:
        now = timezone.now()
        overdue = Q(state=State.PENDING, expires_at__lte=now)
        unstarted = Q(state=State.APPROVED, start_before__isnull=False, start_before__lte=now)
        match self.value():
            case State.PENDING:
                return queryset.filter(Q(state=State.PENDING) & ~overdue)
            case State.APPROVED:
                return queryset.filter(Q(state=State.APPROVED) & ~unstarted)
            case State.EXPIRED:
                return queryset.filter(Q(state=State.EXPIRED) | overdue)
            case State.FAILED:
                return queryset.filter(Q(state=State.FAILED) | unstarted)
            case state if state in State.values:
                return queryset.filter(state=state)
            case _:
                return queryset


class NeedsFilter(admin.SimpleListFilter):
    """By whose word it needs."""

    title = _("needs")
    parameter_name = "needs"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Iterable[tuple[str, Any]]:
        return [("me", _("my word")), ("one", _("one approval")), ("more", _("several approvals"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Approval]) -> QuerySet[Approval]:
        match self.value():
            case "me":
                session = session_of(request)
                if not isinstance(session, Session):
                    return queryset.none()
                mine = deciding.visible_rows(session.scope).order_by().values("pk")
                return queryset.filter(approval_queue.waiting_for(session.scope.person_id, timezone.now()), pk__in=mine)
            case "one":
                return queryset.filter(approvals_needed=1)
            case "more":
                return queryset.filter(approvals_needed__gt=1)
            case _:
                return queryset


class VoteInline(admin.TabularInline):  # type: ignore[type-arg]  # generic in the stubs only
    """Every word that was given, in its order, with those that count no more."""

    model = Vote
    fields = ("voter_name", "decision", "note", "preview_version", "created_at", "cleared_at")
    readonly_fields = fields
    extra = 0
    can_delete = False
    verbose_name_plural = _("votes")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never."""
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """To whoever sees the approval."""
        return True


class _List(ChangeList):
    """Knows the true state of each of its rows with one query."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows: list[Any] = list(self.result_list)
        now, signs = timezone.now(), approval_state.signs_of(rows)
        for row in rows:
            row.now = approval_state.true_state(row, now=now, signs=signs)
        self.result_list = rows


_WHAT = (
    "tool", "true_state", "reason", "votes_of", "asked_by", "owner", "request_entry", "uuid", "approver_page",
)  # fmt: skip
_CHANGE = ("shown_preview", "shown_arguments", "preview_version", "reopened")
_TIMES = (
    "created_at", "expires_at", "approved_at", "start_before", "sent_at", "attempt", "started_at", "progress", "ended_at",
)  # fmt: skip


@admin.register(Approval)
class ApprovalAdmin(ApprovingAdmin):
    """Read-only but for a vote, which goes through `deciding.decide`."""

    list_display = ("tool", "true_state", "asker", "votes_of", "age", "expires")
    list_filter = (StateFilter, NeedsFilter, history.ToolFilter, "created_at")
    list_select_related = ("key", "key__owner")
    search_help_text = _(
        "A whole id: of the approval, the request, a key or a key's family; or a part of the key's name."
    )
    inlines = (VoteInline,)
    fieldsets = (
        (None, {"fields": (*_WHAT,)}),
        (_("What it would change"), {"fields": (*_CHANGE,)}),
        (_("Times"), {"fields": (*_TIMES,)}),
    )
    readonly_fields = (*_WHAT, *_CHANGE, *_TIMES)

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _List

    def found_by(self, term: str) -> Q:
        found = Q(request_id=term) | Q(key__public_id=term) | Q(key__name__icontains=term)
        try:
            return found | Q(pk=UUID(term)) | Q(family=UUID(term))
        except ValueError:
            return found

    @admin.display(description=_("state"), ordering="state")
    def true_state(self, row: Any) -> SafeString:
        """Nobody writes down that a time is over: it shows."""
        state, code = self._state_of(row)
        code = format_html(' <span class="th-quiet">{}</span>', code) if code else ""
        return format_html('<span class="th-state th-{}">{}</span>{}', state.value, state.label, code)

    def _state_of(self, row: Any) -> tuple[Approval.State, str]:
        now: tuple[Approval.State, str] | None = getattr(row, "now", None)
        return approval_state.true_state(row, now=timezone.now()) if now is None else now

    @admin.display(description=_("asked by"), ordering="key__name")
    def asked_by(self, row: Approval) -> SafeString:
        """The key, leading to all keys of its family."""
        page = reverse("admin:api_apikey_changelist")
        return format_html('<a href="{}?family={}">{}</a>', page, row.family_id, row.key.name)

    @admin.display(description=_("asked by"), ordering="key__name")
    def asker(self, row: Approval) -> SafeString:
        """As above with the owner, in a column."""
        return format_html('{} <span class="th-quiet th-line">{}</span>', self.asked_by(row), self.owner(row))

    @admin.display(description=_("asked"), ordering="created_at")
    def age(self, row: Any) -> SafeString:
        return history.moment(row.created_at)

    @admin.display(description=_("owner"))
    def owner(self, row: Approval) -> str:
        return approvals_rows.name_of(row.key.owner)

    @admin.display(description=_("votes"))
    def votes_of(self, row: Approval) -> str:
        return gettext("%(have)d of %(need)d") % {"have": row.approvals, "need": row.approvals_needed}

    @admin.display(description=_("expires"), ordering="expires_at")
    def expires(self, row: Approval) -> SafeString | str:
        state, _code = self._state_of(row)
        return history.moment(row.expires_at) if state == State.PENDING else self.get_empty_value_display()

    @admin.display(description=_("reason"))
    def reason(self, row: Approval) -> str:
        """Why it ended without a result."""
        said = approval_listing.describe(row, with_preview=False)["reason"]
        return str(said or self.get_empty_value_display())

    @admin.display(description=_("page of the approvers"))
    def approver_page(self, row: Approval) -> SafeString:
        address = reverse("api:approval", args=[row.pk])
        return format_html('<a href="{}">{}</a>', address, gettext("With its progress, result and history"))

    @admin.display(description=_("preview"))
    def shown_preview(self, row: Approval) -> SafeString | str:
        if row.preview is None:
            return gettext("The preview is not kept any more.")
        return format_html(
            '<div class="th-preview">{}</div>', render_to_string("api/_preview.html", {"preview": row.preview})
        )

    @admin.display(description=_("arguments"))
    def shown_arguments(self, row: Approval) -> SafeString | str:
        if row.arguments is None:
            return gettext("The arguments are not kept any more.")
        return format_html(
            '<pre class="th-code" tabindex="0"><code>{}</code></pre>', approvals_rows.pretty(row.arguments)
        )

    @admin.display(description=_("progress"))
    def progress(self, row: Approval) -> str:
        share = approval_state.progress_of(approval_state.partial_of(row))
        return self.get_empty_value_display() if share is None else f"{int(share * 100)} %"
