"""`manage.py sweep`: what the embedded server and beat do by themselves, for an installation with neither."""

from dataclasses import asdict
from typing import Any

from django.core.management.base import BaseCommand

from apps.api import sweeps


class Command(BaseCommand):
    help = "Mark lost external calls as unknown, end approvals whose time is over, delete what is past its time. Run it each minute."

    def handle(self, **options: Any) -> None:
        approvals = sweeps.sweep_approvals()
        counts = {**asdict(sweeps.sweep()), "approvals_ended": approvals.ended, "approvals_sent": approvals.sent}
        counts |= sweeps.sweep_others()
        for name, count in counts.items():
            self.stdout.write(f"{name} {count}")
