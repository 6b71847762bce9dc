"""What is remembered of a write that came with an idempotency key (SPEC 10)."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.api.models.approval import Approval


class IdempotencyRecord(models.Model):
    """One caller x tool x key. Who finishes it names the attempt, so an attempt that was overtaken changes nothing."""

    class State(models.TextChoices):
        RUNNING = "running", _("running")
        WAITING = "waiting", _("waiting for a confirmation")
        DONE = "done", _("done")
        UNKNOWN = "unknown", _("outcome unknown")

    # What our own keys begin with, and no caller's can: those are printable.
    OWN = "\x1f"

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    caller = models.CharField(_("caller"), max_length=80)
    tool = models.CharField(_("tool"), max_length=64)
    key = models.CharField(_("key"), max_length=255)
    input_hash = models.CharField(max_length=64)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.RUNNING)
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    external = models.BooleanField(_("external"), default=False)
    # Of a waiting record: the approval whose end is its answer.
    approval = models.ForeignKey(
        Approval, models.SET_NULL, null=True, related_name="records", verbose_name=_("approval")
    )
    # The outcome as it was sent, byte for byte; only of a record that is done.
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    body = models.BinaryField(null=True)
    actor_name = models.CharField(_("called by"), max_length=200, blank=True)
    request_id = models.CharField(_("request id"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    finished_at = models.DateTimeField(_("finished at"), null=True)

    class Meta:
        verbose_name = _("idempotency record")
        verbose_name_plural = _("idempotency records")
        permissions = [("settle_idempotency", _("Can settle an unknown outcome"))]
        ordering = ("-created_at", "pk")
        constraints = [
            models.UniqueConstraint(fields=["caller", "tool", "key"], name="api_idempotency_once"),
            models.CheckConstraint(
                name="api_idempotency_done_has_an_answer",
                condition=~models.Q(state="done")
                | models.Q(status__isnull=False, body__isnull=False, finished_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "uuid"], name="api_idempotency_newest"),
            models.Index(fields=["finished_at"], name="api_idempotency_finished"),
            models.Index(fields=["created_at"], name="api_idempotency_unknown", condition=models.Q(state="unknown")),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.uuid}"

    @property
    def is_own(self) -> bool:
        """Made for a call that came without a key (ID-3): nobody can repeat it by this one."""
        return self.key.startswith(self.OWN)
