"""The activity app: who did what, append-only, each entry with a MAC of its own."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class ActivityConfig(AppConfig):
    """A leaf: it imports no other app of this project."""

    # Whatever the host says: the migrations were made with it.
    default_auto_field = "django.db.models.BigAutoField"
    name = "apps.activity"
    label = "activity"
    verbose_name = _("activity")

    def ready(self) -> None:
        from apps.activity import checks  # noqa: F401  # registers the checks, needs the apps
