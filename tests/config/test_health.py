"""Health: alive is not ready, and the reasons hold no secret."""

from typing import Any

import pytest
from django.core.cache import cache
from django.db import DatabaseError, connection
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client

from tests import services

pytestmark = pytest.mark.sqlite


def test_alive_touches_nothing(client: Client) -> None:
    answer = client.get("/healthz")  # no django_db mark: a query would fail here

    assert (answer.status_code, answer.content) == (200, b"ok")


@pytest.mark.django_db
def test_ready_when_everything_is_there(client: Client) -> None:
    answer = client.get("/readyz")

    assert (answer.status_code, answer.json()) == (200, {"ready": True, "reasons": []})


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
    assert answer.json()["reasons"] == ["The database can't be reached.", "The cache can't be reached."]


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
