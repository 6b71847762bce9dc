"""A broker that is away (RU-2): whoever decides gets an answer all the same, nothing is lost, and health says so."""

import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
import structlog
from django.test import Client
from django.utils import timezone

from apps.api import sweeps
from apps.api.models import Approval, KeyFamily
from tests.api import brokers
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.test_approval_races import approved, machine, state

__all__ = ["machine"]

pytestmark = pytest.mark.alone


@pytest.fixture(params=["closed", "silent"])
def broker(request: pytest.FixtureRequest, settings: Any, machine: Machine) -> Iterator[str]:
    """One whose port is closed, and one that takes every connection and never answers."""
    with brokers.silent() as address:
        settings.CELERY_BROKER_URL = address if request.param == "silent" else "redis://127.0.0.1:1/0"
        settings.API_SEND_TASK = "config.celery.send"
        with brokers.pointed_at(settings.CELERY_BROKER_URL):
            yield settings.CELERY_BROKER_URL


def test_deciding_answers_and_the_sweep_sends_later(machine: Machine, broker: str, settings: Any) -> None:
    from config import celery

    celery.send("sweep")  # what is slow once only
    before, begun = KeyFamily.objects.count(), time.monotonic()
    with structlog.testing.capture_logs() as logged:
        approval = approved(machine)
    assert time.monotonic() - begun < 5  # about one; without a limit for ever
    assert [entry["event"] for entry in logged if entry["log_level"] == "error"] == ["task_not_sent"]
    assert state(approval) == ("approved", "")
    assert sweeps.sweep_approvals(is_server=True).sent == 0  # it was sent just now, as far as anybody knows

    settings.API_SEND_TASK = "apps.api.tasks.in_thread"
    Approval.objects.update(sent_at=timezone.now() - timedelta(seconds=61))
    assert sweeps.sweep_approvals(is_server=True).sent == 1
    wait_until(lambda: state(approval) == ("done", ""))
    assert KeyFamily.objects.count() == before + 1


def test_health_says_so(client: Client, broker: str) -> None:
    sweeps.sweep_approvals(is_server=True)
    begun = time.monotonic()
    answer = client.get("/readyz")
    assert (answer.status_code, answer.json()["reasons"]) == (503, ["The broker can't be reached."])
    assert time.monotonic() - begun < 5
