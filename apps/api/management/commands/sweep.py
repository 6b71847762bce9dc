"""`manage.py sweep`: what the embedded server does hourly by itself, for other installations."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from apps.api import sweeps


class Command(BaseCommand):
    help = "Mark lost external calls as unknown and delete what is past its time. Run it hourly."

    def handle(self, **options: Any) -> None:
        for name, count in asdict(sweeps.sweep()).items():
            self.stdout.write(f"{name} {count}")
