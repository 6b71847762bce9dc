"""Writes that are held for a second word (SPEC 11)."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _


class Confirmation(models.Model):
    """A previewed call that may run once. Of the input only a hash is kept, and of the code a digest.

    The hold of a person's session has no code: a live session of that person confirms it.
    """

    class State(models.TextChoices):
        WAITING = "waiting", _("waiting")
        USED = "used", _("used")
        REJECTED = "rejected", _("rejected")
        EXPIRED = "expired", _("expired")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    caller = models.CharField(_("caller"), max_length=80)
    tool = models.CharField(_("tool"), max_length=64)
    input_hash = models.CharField(max_length=64)
    fingerprint = models.CharField(max_length=64)
    digest = models.CharField(max_length=64, unique=True, null=True)  # noqa: DJ001 - unique, and a hold has none
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.WAITING)
    actor_name = models.CharField(_("called by"), max_length=200, blank=True)
    request_id = models.CharField(_("request id"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created at"))
    expires_at = models.DateTimeField(_("expires at"))
    decided_at = models.DateTimeField(_("decided at"), null=True)

    class Meta:
        verbose_name = _("confirmation")
        verbose_name_plural = _("confirmations")
        ordering = ("-created_at", "pk")
        indexes = [
            models.Index(fields=["-created_at", "uuid"], name="api_confirmation_newest"),
            models.Index(fields=["expires_at"], name="api_confirmation_expires"),
            models.Index(fields=["caller"], name="api_confirmation_waiting", condition=models.Q(state="waiting")),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.uuid}"
