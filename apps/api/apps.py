"""The app `api`: finds the modules' tools at start-up and registers the system checks."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "apps.api"
    label = "api"
    verbose_name = "API"

    def ready(self) -> None:
        # Late imports: these modules need the models of every app.
        from apps.api import checks, registry

        registry.discover()
        checks.register()
