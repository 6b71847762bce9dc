"""One answer of the assistant, from the person's text to its end (TU-1, TU-5)."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agent.models.conversation import Conversation


class Turn(models.Model):
    """Every move is one conditional UPDATE that names the state and, from the claim on, the attempt. At most one of a chat is live.

    It acts for the live session that asked, and for no longer than that lives. A follow-up, after the cards of a turn are decided, goes
    on counting where that turn ended.
    """

    class State(models.TextChoices):
        QUEUED = "queued", _("queued")
        RUNNING = "running", _("running")
        DONE = "done", _("done")
        FAILED = "failed", _("failed")
        STOPPED = "stopped", _("stopped")
        INTERRUPTED = "interrupted", _("interrupted")

    LIVE = (State.QUEUED, State.RUNNING)

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="turns")
    session_uuid = models.UUIDField()
    # The turn whose cards were decided, for a follow-up.
    follows = models.ForeignKey("self", models.SET_NULL, related_name="followed_by", null=True)
    state = models.CharField(_("state"), max_length=12, choices=State.choices, default=State.QUEUED)
    code = models.CharField(_("code"), max_length=64, blank=True)
    attempt = models.PositiveIntegerField(_("attempt"), default=0)
    # Until then nobody else may take the attempt for lost; past it, the attempt writes nothing any more.
    lease_until = models.DateTimeField(null=True)
    rounds = models.PositiveSmallIntegerField(_("rounds"), default=0)
    calls = models.PositiveSmallIntegerField(_("tool calls"), default=0)
    tokens = models.PositiveIntegerField(_("tokens"), default=0)
    cost = models.DecimalField(_("cost in US dollars"), max_digits=12, decimal_places=6, default=0)
    request_context = models.JSONField(default=dict)
    created_at = models.DateTimeField(_("created at"))
    sent_at = models.DateTimeField(_("sent to a worker at"), null=True)
    started_at = models.DateTimeField(_("started at"), null=True)
    ended_at = models.DateTimeField(_("ended at"), null=True)

    class Meta:
        verbose_name = _("turn")
        verbose_name_plural = _("turns")
        ordering = ("-created_at", "pk")
        constraints = [
            models.UniqueConstraint(
                fields=["conversation"],
                name="agent_turn_one_at_a_time",
                condition=models.Q(state__in=["queued", "running"]),
            ),
            models.CheckConstraint(
                name="agent_turn_ended_when_it_says_so",
                condition=models.Q(state__in=["queued", "running"], ended_at=None)
                | (~models.Q(state__in=["queued", "running"]) & models.Q(ended_at__isnull=False)),
            ),
        ]
        indexes = [
            models.Index(fields=["conversation", "-created_at"], name="agent_turn_of_conversation"),
            models.Index(
                fields=["state", "created_at"],
                name="agent_turn_live",
                condition=models.Q(state__in=["queued", "running"]),
            ),
        ]

    def __str__(self) -> str:
        return str(self.uuid)
