"""Rows whose changes stand in the activity log, and nowhere else."""

from typing import Any

from django.contrib import admin, messages
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext


class Gone(Exception):
    """Somebody else deleted the row meanwhile."""


class LoggedAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Django's own record of changes is not kept beside it. Who loses a race with another operator is told so."""

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """What the activity log knows of it."""
        return HttpResponseRedirect(f"{reverse('admin:activity_entry_changelist')}?q={object_id}")

    def changeform_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> Any:
        try:
            return super().changeform_view(request, *arguments, **options)
        except (IntegrityError, Gone):
            text = gettext("Nothing was saved: somebody else changed this at the same moment. Please look at it again.")
            messages.error(request, text)
            return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """See above."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """See above."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """See above."""
