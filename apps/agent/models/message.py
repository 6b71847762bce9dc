"""One line of a chat (CH-3, CH-4)."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agent.models.conversation import Conversation
from apps.agent.models.turn import Turn


class Message(models.Model):
    """`number` is given by the chat's own UPDATE, so number order is commit order. `version` grows with each save of a draft.

    `tool_calls` (`[{"id", "name", "arguments"}]`) of an assistant's message and `tool_result` of a tool's are for the turn loop alone: no
    client ever gets them. `tool_summary` is what it gets: `{"name", "outcome", "count", "truncated"}`.
    """

    class Role(models.TextChoices):
        USER = "user", _("person")
        ASSISTANT = "assistant", _("assistant")
        TOOL = "tool", _("tool")
        NOTICE = "notice", _("notice")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    number = models.PositiveIntegerField(_("number"))
    version = models.PositiveIntegerField(_("version"), default=1)
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    content = models.TextField(_("content"), blank=True)
    # A draft that still grows.
    live = models.BooleanField(_("live"), default=False)
    # A second send of the same message is answered with the first.
    client_uuid = models.UUIDField(null=True)
    # The turn that wrote it; for a person's text, the one that answers it. Null where a turn's row was purged.
    turn = models.ForeignKey(Turn, models.SET_NULL, related_name="messages", null=True)
    # A notice's reason, as `turns` names them; else empty.
    code = models.CharField(_("code"), max_length=64, blank=True)
    tool_calls = models.JSONField(default=list)
    tool_call_id = models.CharField(max_length=200, blank=True)
    tool_result = models.JSONField(null=True)
    tool_summary = models.JSONField(null=True)
    created_at = models.DateTimeField(_("created at"))

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
        ordering = ("conversation_id", "number")
        constraints = [
            models.UniqueConstraint(fields=["conversation", "number"], name="agent_message_number"),
            models.UniqueConstraint(
                fields=["conversation", "client_uuid"],
                name="agent_message_sent_once",
                condition=models.Q(client_uuid__isnull=False),
            ),
            models.CheckConstraint(
                name="agent_message_client_uuid_of_a_person",
                condition=models.Q(client_uuid=None) | models.Q(role="user"),
            ),
        ]
        indexes = [
            models.Index(fields=["conversation"], name="agent_message_live", condition=models.Q(live=True)),
        ]

    def __str__(self) -> str:
        return str(self.uuid)
