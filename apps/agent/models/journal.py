"""What each call of a model took (TU-7)."""

import uuid

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.agent.models.endpoint import ModelEndpoint
from apps.agent.models.turn import Turn


class ModelCall(models.Model):
    """One request to a provider. It outlives its chat, so that the sums stay true. `cost` is US dollars; null: no price is known."""

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, related_name="+", null=True, verbose_name=_("person")
    )
    turn = models.ForeignKey(Turn, models.SET_NULL, related_name="model_calls", null=True)
    attempt = models.PositiveIntegerField(_("attempt"), default=1)
    round = models.PositiveSmallIntegerField(_("round"), default=1)
    endpoint = models.ForeignKey(
        ModelEndpoint, models.SET_NULL, related_name="calls", null=True, verbose_name=_("endpoint")
    )
    provider = models.CharField(_("provider"), max_length=20)
    model = models.CharField(_("model"), max_length=200)
    # Empty: it answered whole. Else a provider's typed code, or `stopped`.
    code = models.CharField(_("code"), max_length=64, blank=True)
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cache_read_tokens = models.PositiveIntegerField(_("tokens read from a cache"), default=0)
    cache_write_tokens = models.PositiveIntegerField(_("tokens written to a cache"), default=0)
    # The provider said nothing of its tokens, because it was stopped or failed: counted from the characters.
    is_estimate = models.BooleanField(_("estimated"), default=False)
    cost = models.DecimalField(_("cost in US dollars"), max_digits=12, decimal_places=6, null=True)
    started_at = models.DateTimeField(_("started at"))
    ended_at = models.DateTimeField(_("ended at"))

    class Meta:
        verbose_name = _("model call")
        verbose_name_plural = _("model calls")
        ordering = ("-started_at", "pk")
        indexes = [
            models.Index(fields=["-started_at", "uuid"], name="agent_modelcall_newest"),
            models.Index(fields=["user", "-started_at"], name="agent_modelcall_of_person"),
        ]

    def __str__(self) -> str:
        return str(self.uuid)
