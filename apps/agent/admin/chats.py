"""Chats in the admin site: that they are there, whose, and how long. Never a word of them: titles and messages are their person's alone."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.activity.admin import ReadOnlyAdmin
from apps.agent import access
from apps.agent.models import Conversation


@admin.register(Conversation)
class ConversationAdmin(ReadOnlyAdmin):
    """Read-only. A field that is added to the row shows up here only if somebody names it."""

    list_display = ("uuid", "user", "status", "message_count", "created_at", "last_message_at", "deleted_at")
    fields = (
        "uuid", "user", "status", "message_count", "turn_count", "created_at", "last_message_at", "deleted_at",
    )  # fmt: skip
    readonly_fields = fields
    list_filter = ("status", "created_at")
    list_select_related = ("user",)
    search_fields = ("=user__email",)
    search_help_text = _("A whole address of a person, or the whole id of a chat.")
    ordering = ("-created_at", "uuid")

    class Media:
        css = {"all": ("css/api-admin.css",)}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """Without the title: it does not even leave the database."""
        rows: QuerySet[Conversation] = super().get_queryset(request)
        return rows.defer("title")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        uuid = access.known(search_term.strip())
        if uuid is not None:
            return queryset.filter(pk=uuid), False
        return super().get_search_results(request, queryset, search_term)

    @admin.display(description=_("turns"))
    def turn_count(self, chat: Conversation) -> int:
        return chat.turns.count()
