"""The operator's word on an outcome that nobody knows (ID-3): two buttons and two actions, each behind a page that says what follows."""

from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from apps.api import acting, records
from apps.api.admin import history
from apps.api.models import IdempotencyRecord

State = IdempotencyRecord.State

# The page that asks names this many records.
NAMED = 20
# More are not counted.
COUNTED = 1_000


def may_settle(request: HttpRequest) -> bool:
    return request.user.has_perm("api.settle_idempotency")


def count_unknown(request: HttpRequest) -> int:
    """How many outcomes wait for a word, for those who see them; at most COUNTED."""
    if not (may_settle(request) or request.user.has_perm("api.view_idempotencyrecord")):
        return 0
    return IdempotencyRecord.objects.filter(state=State.UNKNOWN).order_by()[:COUNTED].count()


class SettlingAdmin(history.HistoryAdmin):
    """What an admin of records needs to settle them."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who settles has to see what."""
        return super().has_view_permission(request, obj) or may_settle(request)

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return may_settle(request)

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.settle_view)
        own = [
            path("<uuid:pk>/happened/", view, {"happened": True}, name="api_idempotencyrecord_happened"),
            path("<uuid:pk>/did-not-happen/", view, {"happened": False}, name="api_idempotencyrecord_did_not_happen"),
        ]
        return own + super().get_urls()

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        record: IdempotencyRecord = context["original"]
        can_settle = record.state == State.UNKNOWN and may_settle(request)
        return super().render_change_form(request, {**context, "can_settle": can_settle}, *args, **kwargs)

    @admin.action(description=_("Settle: it happened"), permissions=["settle"])
    def settle_as_happened(self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord]) -> HttpResponse | None:
        """Asks first."""
        return self._act(request, queryset, happened=True)

    @admin.action(description=_("Settle: it did not happen"), permissions=["settle"])
    def settle_as_not_happened(
        self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord]
    ) -> HttpResponse | None:
        """Asks first."""
        return self._act(request, queryset, happened=False)

    def settle_view(self, request: HttpRequest, pk: UUID, *, happened: bool) -> HttpResponse:
        """The buttons of one record's page."""
        if not self.has_settle_permission(request):
            raise PermissionDenied
        unknown = self.get_queryset(request).filter(pk=pk, state=State.UNKNOWN)
        if request.method != "POST" and unknown:
            return self._ask(request, unknown, happened=happened, chosen=QueryDict())
        self._settle(request, unknown, happened=happened)
        return HttpResponseRedirect(f"{_list_page()}?state={State.UNKNOWN.value}")

    def _act(
        self, request: HttpRequest, queryset: QuerySet[IdempotencyRecord], *, happened: bool
    ) -> HttpResponse | None:
        unknown = queryset.filter(state=State.UNKNOWN)
        if not request.POST.get("post") and unknown.exists():
            return self._ask(request, unknown, happened=happened, chosen=request.POST)
        self._settle(request, unknown, happened=happened)
        return None

    def _ask(
        self, request: HttpRequest, unknown: QuerySet[IdempotencyRecord], *, happened: bool, chosen: QueryDict
    ) -> HttpResponse:
        named = list(unknown[: NAMED + 1])
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Settle: it happened") if happened else gettext("Settle: it did not happen"),
            "opts": self.opts,
            "media": self.media,
            "happened": happened,
            "named": [(record, self.called_by(record), history.moment(record.created_at)) for record in named[:NAMED]],
            "more": len(named) > NAMED,
            "everything": chosen.get("select_across") == "1",
            "action": chosen.get("action"),
            "chosen": chosen.getlist("_selected_action"),
            "back": _list_page(),
        }
        return TemplateResponse(request, "admin/api/idempotencyrecord/settle.html", context)

    def _settle(self, request: HttpRequest, unknown: QuerySet[IdempotencyRecord], *, happened: bool) -> None:
        by = acting.of(request)
        outcomes = [records.settle(record, happened=happened, **by) for record in unknown.order_by("pk")]
        if settled := outcomes.count(True):
            text = ngettext("%(count)d outcome settled.", "%(count)d outcomes settled.", settled)
            messages.success(request, text % {"count": settled})
        if not settled or False in outcomes:
            text = gettext(
                "Somebody else was faster, or it was settled already: nothing was changed where the outcome is known."
            )
            messages.warning(request, text)


def _list_page() -> str:
    return reverse("admin:api_idempotencyrecord_changelist")
