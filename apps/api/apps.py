"""The app `api`: finds the modules' tools at start-up and registers the system checks."""

import structlog
from django.apps import AppConfig


class ApiConfig(AppConfig):
    # Whatever the host says: the migrations were made with it.
    default_auto_field = "django.db.models.BigAutoField"
    name = "apps.api"
    label = "api"
    verbose_name = "API"

    def ready(self) -> None:
        # Late imports: these modules need the models of every app.
        from apps.api import announcing, checks, registry, tasks

        _configure_log()
        registry.discover()
        checks.register()
        tasks.connect()
        announcing.connect()


def _configure_log() -> None:
    """For a project that configures no structlog: plain lines of the standard library.

    The library's own default draws the local variables into every traceback, and keys with them.
    """
    if not structlog.is_configured():
        structlog.configure(
            processors=[structlog.contextvars.merge_contextvars, structlog.stdlib.render_to_log_kwargs],
            logger_factory=structlog.stdlib.LoggerFactory(),
            wrapper_class=structlog.stdlib.BoundLogger,
        )
