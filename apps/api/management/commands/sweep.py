"""`manage.py sweep`: delete what is past its time, for installations without the embedded server's own hourly round."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from apps.api import sweeps


class Command(BaseCommand):
    help = "Delete idempotency records, confirmations and signs of life that are past their time. Run it hourly."

    def handle(self, **options: Any) -> None:
        for name, count in asdict(sweeps.sweep()).items():
            self.stdout.write(f"{name} {count}")
