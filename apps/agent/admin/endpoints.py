"""The endpoints of models in the admin site: where a model answers, its key (written, never read), limits, prices, and a test."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.agent import endpoint_keys, endpoint_store, trials
from apps.agent.admin import failure_words
from apps.agent.admin.endpoint_form import EndpointForm
from apps.agent.admin.logged import Gone, LoggedAdmin
from apps.agent.models import ModelEndpoint
from apps.agent.providers.connection import DEFAULT_URLS
from apps.agent.providers.protocol import Failure
from apps.agent.trials import Answered, Busy
from apps.api import acting, people

# Characters of a model's answer in the message.
SHOWN = 200


@admin.register(ModelEndpoint)
class ModelEndpointAdmin(LoggedAdmin):
    """Every change has its entry in the activity log."""

    form = EndpointForm
    list_display = ("name", "model", "address", "key_state", "is_default", "is_enabled")
    list_filter = ("provider", "is_enabled")
    search_fields = ("name", "model", "base_url")
    ordering = ("-is_default", "name", "pk")
    fieldsets = (
        (None, {"fields": ("name", "provider", "base_url", "model", "key", "remove_key")}),
        (_("Use"), {"fields": ("is_default", "is_enabled")}),
        (_("Limits"), {"fields": ("context_chars", "max_output_tokens")}),
        (
            _("Prices"),
            {
                "fields": ("input_price", "output_price", "cache_read_price", "cache_write_price"),
                "description": _(
                    "US dollars a million tokens. Without them the known prices of the model count, where there are any. "
                    "A model without a price costs nothing in the sums: only its tokens are limited."
                ),
            },
        ),
    )

    class Media:
        css = {"all": ("css/api-admin.css",)}

    def get_urls(self) -> list[URLPattern]:
        test = self.admin_site.admin_view(self.test_view)
        return [path("<uuid:pk>/test/", test, name="agent_modelendpoint_test"), *super().get_urls()]

    def get_fieldsets(self, request: HttpRequest, obj: ModelEndpoint | None = None) -> Any:
        """Without the box that takes a key away where there is none; and who may only look sees whether there is one."""
        _first, *rest = self.fieldsets
        if not self.has_change_permission(request, obj) and obj is not None:
            return [(None, {"fields": ("name", "provider", "base_url", "model", "key_state")}), *rest]
        if obj is not None and obj.key_encrypted:
            return self.fieldsets
        return [(None, {"fields": ("name", "provider", "base_url", "model", "key")}), *rest]

    def get_readonly_fields(self, request: HttpRequest, obj: ModelEndpoint | None = None) -> Any:
        return () if self.has_change_permission(request, obj) else ("key_state",)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """The first one is the default."""
        is_first = not ModelEndpoint.objects.filter(is_default=True).exists()
        return {"is_default": is_first, **super().get_changeform_initial_data(request)}

    # Writes

    def save_model(self, request: HttpRequest, obj: ModelEndpoint, form: Any, change: bool) -> None:  # noqa: FBT001 - Django's
        by = acting.of(request)
        if change and not endpoint_store.change(obj, form.changed_data, key=form.wanted_key(), **by):
            raise Gone
        if not change:
            endpoint_store.create(obj, key=form.wanted_key() or "", **by)

    def delete_model(self, request: HttpRequest, obj: ModelEndpoint) -> None:
        endpoint_store.delete(obj, **acting.of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[ModelEndpoint]) -> None:
        for row in queryset:
            endpoint_store.delete(row, **acting.of(request))

    # The test

    def test_view(self, request: HttpRequest, pk: Any) -> HttpResponse:
        """One tiny request to the saved endpoint; what came of it is the message of the page that follows."""
        row = get_object_or_404(ModelEndpoint, pk=pk)
        if not self.has_change_permission(request, row) or people.current().is_impersonated(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        self._test(request, row)
        return HttpResponseRedirect(reverse("admin:agent_modelendpoint_change", args=[row.pk]))

    def _test(self, request: HttpRequest, row: ModelEndpoint) -> None:
        try:
            answered = trials.run(row, person_id=str(request.user.pk))
        except Busy:
            messages.warning(request, gettext("Other tests are running. Please try again in a moment."))
            return
        except Failure as failure:
            endpoint_store.note_trial(row, code=failure.code, **acting.of(request))
            messages.error(request, failure_words.told(failure))
            return
        endpoint_store.note_trial(row, code="", **acting.of(request))
        messages.success(request, _told(answered))

    # Columns

    @admin.display(description=_("address"), ordering="base_url")
    def address(self, row: ModelEndpoint) -> str:
        return row.base_url or DEFAULT_URLS[row.provider]

    @admin.display(description=_("key"))
    def key_state(self, row: ModelEndpoint) -> SafeString | str:
        """Whether there is one, and whether it can be opened; never what it is."""
        if not row.key_encrypted:
            return gettext("none")
        try:
            endpoint_keys.take(row)
        except Failure:
            return format_html('<strong class="th-state th-revoked">{}</strong>', gettext("can't be opened"))
        return gettext("stored")


def _told(answered: Answered) -> str:
    cut: Iterable[str] = answered.text.split()
    text = " ".join(cut)[:SHOWN]
    said = gettext("It answered “%(text)s”") % {"text": text} if text else gettext("It answered, without a text,")
    took = gettext("in %(seconds).1f seconds: %(sent)d tokens in, %(got)d out, %(cost)s.") % {
        "seconds": answered.seconds,
        "sent": answered.usage.input_tokens,
        "got": answered.usage.output_tokens,
        "cost": gettext("no price is known") if answered.cost is None else f"${answered.cost:f}",
    }
    return f"{said} {took}"
