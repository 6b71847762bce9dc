"""The settings in production: nothing is guessed, and Django's own deployment check finds nothing."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.management import call_command
from django.db import connections

from config import checks as config_checks

PRODUCTION = {
    "SECRET_KEY": "k3y-of-a-production-like-environment-with-fifty-characters-or-more",
    "ALLOWED_HOSTS": "tollhouse.example.org",
    "BASE_URL": "https://tollhouse.example.org",
    "DATABASE_URL": "postgresql://tollhouse@127.0.0.1:1/tollhouse",
    "REDIS_URL": "redis://127.0.0.1:1/0",
    "API_KEY_PEPPERS": "one:a-pepper-of-sixteen-characters",
    "ACTIVITY_MAC_KEYS": "one:a-mac-key-of-sixteen-characters",
    "MODEL_KEY_SECRETS": "one:a-secret-of-sixteen-characters",
}


def manage(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parent.parent.parent
    kept = {name: value for name, value in os.environ.items() if name in {"PATH", "HOME", "LANG"}}
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=root, env={**kept, **environment}, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def test_the_deployment_check_is_clean_in_production() -> None:
    answer = manage("check", "--deploy", "--fail-level", "WARNING", environment=PRODUCTION)

    assert answer.returncode == 0, answer.stderr
    assert "no issues" in answer.stdout


@pytest.mark.parametrize("name", sorted(set(PRODUCTION) - {"DATABASE_URL", "REDIS_URL"}))
def test_production_does_not_start_without_a_value_that_it_needs(name: str) -> None:
    answer = manage("check", environment={key: value for key, value in PRODUCTION.items() if key != name})

    assert answer.returncode != 0
    assert f"The environment variable {name} is missing." in answer.stderr


def test_production_does_not_start_without_a_shared_cache() -> None:
    answer = manage("check", environment={key: value for key, value in PRODUCTION.items() if key != "REDIS_URL"})

    assert answer.returncode != 0
    assert "not a shared cache" in answer.stderr


def test_debug_starts_without_any_value(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'empty.sqlite3'}"

    answer = manage("check", environment={"DEBUG": "1", "EMBEDDED": "1", "DATABASE_URL": database})

    assert answer.returncode == 0, answer.stderr


def test_sqlite_without_the_embedded_process_is_warned_of(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(connections["default"]), "vendor", "sqlite")
    found = []
    for embedded in (False, True):
        settings.EMBEDDED = embedded
        found.append([warning.id for warning in config_checks.one_process()])

    assert found == [["config.W001"], []]


@pytest.mark.django_db
def test_the_migrations_say_what_the_models_say() -> None:
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)


def test_this_run_passes_its_own_checks() -> None:
    errors = [found for found in checks.run_checks() if found.level >= checks.ERROR]

    assert errors == []
