"""The assistant: chats, turns, the models that answer, and their pages (SPEC 18 to 20)."""

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentConfig(AppConfig):
    name = "apps.agent"
    verbose_name = _("Assistant")

    def ready(self) -> None:
        # Late imports: these modules need the models of every app.
        from apps.agent import announcing, tasks

        announcing.connect()
        tasks.connect()
