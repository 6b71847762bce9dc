"""What an operator sets for one person's assistant (TU-9)."""

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _


class AgentSetting(models.Model):
    """Without a row, and where a limit is null, the installation's own setting counts."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        models.CASCADE,
        primary_key=True,
        related_name="agent_setting",
        verbose_name=_("person"),
    )
    is_enabled = models.BooleanField(_("may use the assistant"), default=True)
    daily_tokens = models.PositiveIntegerField(_("tokens a day"), null=True, blank=True)
    daily_cost = models.DecimalField(_("US dollars a day"), max_digits=10, decimal_places=4, null=True, blank=True)
    turns_at_once = models.PositiveSmallIntegerField(_("turns at once"), null=True, blank=True)
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("person's assistant")
        verbose_name_plural = _("Settings → Agent")
        ordering = ("user",)

    def __str__(self) -> str:
        return str(self.user)
