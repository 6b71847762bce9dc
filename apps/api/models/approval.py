"""Writes that wait for another person (SPEC 12)."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.api.models.key import ApiKey, KeyFamily


class Approval(models.Model):
    """One write of a key that requires approval. Every move is one conditional UPDATE that names what it saw.

    Stored, shown and run are the arguments after defaults. Who runs it names the attempt, and who decides names the preview's version.
    """

    class State(models.TextChoices):
        PENDING = "pending", _("pending")
        APPROVED = "approved", _("approved")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        REJECTED = "rejected", _("rejected")
        EXPIRED = "expired", _("expired")
        CANCELLED = "cancelled", _("cancelled")
        FAILED = "failed", _("failed")

    LIVE = (State.PENDING, State.APPROVED, State.RUNNING)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    family = models.ForeignKey(KeyFamily, models.PROTECT, related_name="approvals", verbose_name=_("key family"))
    key = models.ForeignKey(ApiKey, models.PROTECT, related_name="approvals", verbose_name=_("asked by"))
    tool = models.CharField(_("tool"), max_length=64)
    input_hash = models.CharField(max_length=64)
    arguments = models.JSONField(_("arguments"), null=True)
    preview = models.JSONField(_("preview"), null=True)
    fingerprint = models.CharField(max_length=64)
    preview_version = models.PositiveIntegerField(_("version of the preview"), default=1)
    state = models.CharField(_("state"), max_length=10, choices=State.choices, default=State.PENDING)
    code = models.CharField(_("code"), max_length=64, blank=True)
    approvals = models.PositiveSmallIntegerField(_("approvals"), default=0)
    approvals_needed = models.PositiveSmallIntegerField(_("approvals needed"), default=1)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    reopened = models.PositiveSmallIntegerField(_("times it went back"), default=0)
    # The outcome of the run as a replay sends it, byte for byte.
    status = models.PositiveSmallIntegerField(_("status"), null=True)
    body = models.BinaryField(null=True)
    partial = models.JSONField(_("partial result"), null=True)
    request_id = models.CharField(_("request id"), max_length=64, blank=True)
    created_at = models.DateTimeField(_("created at"))
    expires_at = models.DateTimeField(_("to be decided until"))
    approved_at = models.DateTimeField(_("approved at"), null=True)
    start_before = models.DateTimeField(_("to be started until"), null=True)
    sent_at = models.DateTimeField(_("sent to a worker at"), null=True)
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta:
        verbose_name = _("approval")
        verbose_name_plural = _("approvals")
        permissions = [("decide_approval", _("Can approve or reject what a key asks for"))]
        ordering = ("-created_at", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=["family", "tool", "input_hash"],
                name="api_approval_one_that_waits",
                condition=models.Q(state__in=["pending", "approved", "running"]),
            ),
            models.CheckConstraint(
                name="api_approval_ended_when_it_says_so",
                condition=models.Q(state__in=["pending", "approved", "running"], ended_at=None)
                | (~models.Q(state__in=["pending", "approved", "running"]) & models.Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(fields=["-created_at", "uuid"], name="api_approval_newest"),
            models.Index(fields=["family", "-created_at", "uuid"], name="api_approval_of_family"),
            models.Index(
                fields=["state"],
                name="api_approval_live",
                condition=models.Q(state__in=["pending", "approved", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.uuid}"


class Vote(models.Model):
    """One person's word on one version of a preview. A vote that no longer counts stays, with the time when it was cleared."""

    class Decision(models.TextChoices):
        APPROVE = "approve", _("approved")
        REJECT = "reject", _("rejected")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    approval = models.ForeignKey(Approval, models.CASCADE, related_name="votes", verbose_name=_("approval"))
    voter = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+", verbose_name=_("decided by")
    )
    voter_name = models.CharField(_("name"), max_length=200)
    decision = models.CharField(_("decision"), max_length=10, choices=Decision.choices)
    note = models.TextField(_("note"), blank=True)
    preview_version = models.PositiveIntegerField(_("version of the preview"))
    created_at = models.DateTimeField(_("decided at"))
    cleared_at = models.DateTimeField(_("cleared at"), null=True)

    class Meta:
        verbose_name = _("vote")
        verbose_name_plural = _("votes")
        ordering = ("created_at", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=["approval", "voter"],
                name="api_vote_one_a_person",
                condition=models.Q(cleared_at=None),
            )
        ]

    def __str__(self) -> str:
        return f"{self.decision} {self.approval_id}"
