"""A chat of one person with the assistant (CH-2)."""

import uuid
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class Conversations(models.QuerySet["Conversation"]):
    def of(self, person: UUID) -> "Conversations":
        """The person's own that are not deleted: what is not among them is gone for every door (CH-1)."""
        return self.filter(user=person).exclude(status=Conversation.Status.DELETED)


class Conversation(models.Model):
    """Rename, archive and delete are one conditional UPDATE each. `last_message_at` starts as the creation time."""

    class Status(models.TextChoices):
        ACTIVE = "active", _("active")
        ARCHIVED = "archived", _("archived")
        DELETED = "deleted", _("deleted")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, related_name="conversations", verbose_name=_("person")
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    status = models.CharField(_("status"), max_length=10, choices=Status.choices, default=Status.ACTIVE)
    message_count = models.PositiveIntegerField(_("messages"), default=0)
    created_at = models.DateTimeField(_("created at"))
    last_message_at = models.DateTimeField(_("last message at"))
    deleted_at = models.DateTimeField(_("deleted at"), null=True)
    # What it was before it was deleted, for who takes that back.
    status_before = models.CharField(max_length=10, choices=Status.choices, blank=True)

    objects = Conversations.as_manager()

    class Meta:
        verbose_name = _("chat")
        verbose_name_plural = _("chats")
        permissions = [("use_assistant", _("Can use the assistant"))]
        ordering = ("-last_message_at", "-uuid")
        constraints = [
            models.CheckConstraint(
                name="agent_conversation_deleted_when_it_says_so",
                condition=models.Q(status="deleted", deleted_at__isnull=False)
                | (~models.Q(status="deleted") & models.Q(deleted_at=None)),
            ),
        ]
        indexes = [
            models.Index(fields=["user", "status", "-last_message_at", "-uuid"], name="agent_conversation_list"),
            models.Index(
                fields=["deleted_at"], name="agent_conversation_deleted", condition=models.Q(status="deleted")
            ),
            models.Index(fields=["-created_at", "uuid"], name="agent_conversation_newest"),
        ]

    def __str__(self) -> str:
        return str(self.uuid)
