"""The project itself as an app: its checks, its commands and its demo data."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    """Has no models."""

    name = "config"

    def ready(self) -> None:
        from config import checks, metrics  # noqa: F401  # registers the checks

        metrics.connect()
