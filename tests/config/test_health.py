"""Health: alive is not ready, and the reasons hold no secret."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from django.utils import timezone

from apps.api import sweeps
from apps.api.models import Lifesign
from tests import services
from tests.api import brokers

pytestmark = pytest.mark.sqlite


def test_alive_touches_nothing(client: Client) -> None:
    answer = client.get("/healthz")  # no django_db mark: a query would fail here

    assert (answer.status_code, answer.content) == (200, b"ok")


@pytest.fixture(autouse=True)
def swept(request: pytest.FixtureRequest) -> None:
    """As a server's timer or beat does it; not for a test that touches no database."""
    if "django_db" in request.keywords or "db" in request.fixturenames:
        request.getfixturevalue("db")
        sweeps.sweep_approvals()


@pytest.mark.django_db
def test_not_ready_when_the_sweeps_do_not_run(client: Client) -> None:
    Lifesign.objects.update(seen_at=timezone.now() - timedelta(minutes=6))
    old = client.get("/readyz")
    Lifesign.objects.all().delete()
    none = client.get("/readyz")

    assert old.status_code == 503
    assert re.fullmatch(r"\['The last sweep was 36\d seconds ago\.'\]", str(old.json()["reasons"]))
    assert (none.status_code, none.json()["reasons"]) == (503, ["The sweeps have not run yet."])


@pytest.mark.django_db
def test_not_ready_while_the_broker_is_away(client: Client, settings: Any) -> None:
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    with brokers.pointed_at(settings.CELERY_BROKER_URL):
        answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["The broker can't be reached."])


@pytest.mark.django_db
def test_sweeps_that_run_seldom_are_given_the_time(client: Client, settings: Any) -> None:
    settings.API_APPROVALS_SWEEP_SECONDS = 600
    Lifesign.objects.update(seen_at=timezone.now() - timedelta(minutes=11))

    assert client.get("/readyz").status_code == 200


@pytest.mark.django_db
def test_ready_when_everything_is_there(client: Client) -> None:
    answer = client.get("/readyz")

    found = answer.json()
    assert found.pop("last_sweep_seconds") in range(60)
    assert (answer.status_code, found) == (200, {"ready": True, "reasons": []})


@pytest.mark.django_db
def test_not_ready_when_a_migration_is_missing(client: Client) -> None:
    MigrationRecorder.Migration.objects.filter(app="activity").delete()

    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()["reasons"]) == (503, ["Migrations are not applied."])


@pytest.mark.django_db
def test_not_ready_when_the_database_or_the_cache_fails_and_the_reason_names_no_detail(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise DatabaseError("postgresql://user:password@host")

    monkeypatch.setattr(connection, "cursor", fail)
    monkeypatch.setattr(cache, "get", fail)

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == [
        "The database can't be reached.",
        "The cache can't be reached.",
        "The sweeps can't be reached.",
    ]


def test_not_ready_while_redis_is_away_and_ready_when_it_is_back(
    db: None, client: Client, redis_server: services.Redis, settings: Any
) -> None:
    settings.CACHES = {
        "default": {"BACKEND": "django.core.cache.backends.redis.RedisCache", "LOCATION": redis_server.url}
    }
    answers = [client.get("/readyz").status_code]
    redis_server.kill()
    answers.append(client.get("/readyz").status_code)
    redis_server.start()
    answers.append(client.get("/readyz").status_code)

    assert answers == [200, 503, 200]
