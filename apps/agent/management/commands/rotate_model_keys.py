"""`manage.py rotate_model_keys`: seals the keys of model endpoints under the first of MODEL_KEY_SECRETS, so that older ones can go."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.agent import endpoint_keys


class Command(BaseCommand):
    """Safe to run again, and beside whoever changes a key."""

    help = "Seal the keys of model endpoints under the current secret."

    def handle(self, **_: Any) -> None:
        rotated = endpoint_keys.rotate()
        self.stdout.write(f"{rotated.sealed} sealed again, {rotated.current} were already.")
        if rotated.unopened:
            raise CommandError(f"Can't be opened, type them again: {', '.join(rotated.unopened)}")
