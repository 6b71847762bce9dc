"""Where a model answers (TU-7)."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _


class ModelEndpoint(models.Model):
    """One of them is the default. The key is kept encrypted, and shown to nobody again. Prices are US dollars a million tokens."""

    class Provider(models.TextChoices):
        OPENAI = "openai", _("OpenAI, and whatever speaks its wire format")
        ANTHROPIC = "anthropic", _("Anthropic")

    uuid = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(_("name"), max_length=100, unique=True)
    provider = models.CharField(_("provider"), max_length=20, choices=Provider.choices)
    base_url = models.CharField(_("base URL"), max_length=500, blank=True)
    model = models.CharField(_("model"), max_length=200)
    key_encrypted = models.TextField(blank=True, editable=False)
    is_default = models.BooleanField(_("default"), default=False)
    is_enabled = models.BooleanField(_("enabled"), default=True)
    context_chars = models.PositiveIntegerField(_("most characters of history"), null=True, blank=True)
    max_output_tokens = models.PositiveIntegerField(_("most tokens of one answer"), default=4_096)
    input_price = models.DecimalField(_("price of input"), max_digits=12, decimal_places=6, null=True, blank=True)
    output_price = models.DecimalField(_("price of output"), max_digits=12, decimal_places=6, null=True, blank=True)
    cache_read_price = models.DecimalField(
        _("price of input read from a cache"), max_digits=12, decimal_places=6, null=True, blank=True
    )
    cache_write_price = models.DecimalField(
        _("price of input written to a cache"), max_digits=12, decimal_places=6, null=True, blank=True
    )
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("model endpoint")
        verbose_name_plural = _("model endpoints")
        ordering = ("name",)
        constraints = [
            models.UniqueConstraint(
                fields=["is_default"], name="agent_endpoint_one_default", condition=models.Q(is_default=True)
            ),
        ]

    def __str__(self) -> str:
        return self.name
