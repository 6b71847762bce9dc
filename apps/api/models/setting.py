"""The settings that an operator changes while the application runs (SPEC 26): one JSON value a name."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Setting(models.Model):
    """A value that differs from its default. `apps.api.switches` knows the names and reads them."""

    name = models.CharField(_("name"), max_length=64, primary_key=True)
    value = models.JSONField(_("value"))
    updated_at = models.DateTimeField(_("updated at"), auto_now=True)

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("Settings → API")
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
