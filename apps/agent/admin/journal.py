"""The journal of calls of models in the admin site: read-only, with filters, and the sums of what the filters leave."""

from decimal import Decimal
from typing import Any

from django.contrib import admin
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from apps.activity.admin import ReadOnlyAdmin
from apps.agent.models import ModelCall


class OutcomeFilter(admin.SimpleListFilter):
    """By how it ended."""

    title = _("outcome")
    parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("answered", _("answered")), ("stopped", _("stopped")), ("failed", _("failed"))]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        match self.value():
            case "answered":
                return queryset.filter(code="")
            case "stopped":
                return queryset.filter(code="stopped")
            case "failed":
                return queryset.exclude(code__in=["", "stopped"])
            case _:
                return queryset


@admin.register(ModelCall)
class ModelCallAdmin(ReadOnlyAdmin):
    """What was said is in no row, so it is on no page."""

    list_display = ("started_at", "person", "model", "outcome", "tokens", "shown_cost", "seconds")
    list_filter = (OutcomeFilter, "started_at", "endpoint", "provider", "is_estimate")
    list_select_related = ("user",)
    search_fields = ("=model", "=user__email")
    search_help_text = _("A whole address of a person, or the whole name of a model.")
    ordering = ("-started_at", "pk")
    date_hierarchy = None

    class Media:
        css = {"all": ("css/api-admin.css",)}

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        answer = super().changelist_view(request, extra_context)
        context = getattr(answer, "context_data", None)
        if context is not None and "cl" in context:
            context["sums"] = _sums(context["cl"].queryset)
        return answer

    @admin.display(description=_("person"), ordering="user")
    def person(self, call: ModelCall) -> str:
        return str(call.user) if call.user is not None else self.get_empty_value_display()

    @admin.display(description=_("outcome"), ordering="code")
    def outcome(self, call: ModelCall) -> Any:
        return call.code or _("answered")

    @admin.display(description=_("tokens in / out"))
    def tokens(self, call: ModelCall) -> str:
        return f"{call.input_tokens} / {call.output_tokens}"

    @admin.display(description=_("US dollars"), ordering="cost")
    def shown_cost(self, call: ModelCall) -> Any:
        if call.cost is None:
            return _("unknown")
        return f"≈ {call.cost}" if call.is_estimate else str(call.cost)

    @admin.display(description=_("seconds"))
    def seconds(self, call: ModelCall) -> str:
        return f"{(call.ended_at - call.started_at).total_seconds():.1f}"


def _sums(calls: QuerySet[ModelCall]) -> dict[str, Any]:
    """Of everything that the filters and the search leave, not of the page."""
    found = calls.order_by().aggregate(
        calls=Count("pk"),
        failed=Count("pk", filter=~Q(code="")),
        estimated=Count("pk", filter=Q(is_estimate=True)),
        input=Sum("input_tokens"),
        output=Sum("output_tokens"),
        cache_read=Sum("cache_read_tokens"),
        cache_write=Sum("cache_write_tokens"),
        unpriced=Count("pk", filter=Q(cost=None)),
        cost=Sum("cost"),
    )
    sums = {name: value or (Decimal(0) if name == "cost" else 0) for name, value in found.items()}
    return {**sums, "cached": sums["cache_read"] + sums["cache_write"]}
