"""The app of people: who they are, their live sessions, and the doors that they come in by."""

from importlib import import_module

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AccountsConfig(AppConfig):
    name = "apps.accounts"
    label = "accounts"
    verbose_name = _("People")

    def ready(self) -> None:
        # They listen to signals: a session row follows every sign-in, block, new password and lost role, whichever door
        # was used.
        import_module("apps.accounts.sessions")
        import_module("apps.accounts.passwords")
        import_module("apps.accounts.roles")
