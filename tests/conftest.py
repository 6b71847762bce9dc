"""Fixtures that every part of the suite uses. The services come from `tests.services`."""

import os
import shutil
import threading
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.cache import cache
from django.db import connection, connections
from playwright.sync_api import Browser, sync_playwright

from apps.api import lifesigns, standing
from tests import emptying, services


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    tmp_path_factory: pytest.TempPathFactory, django_db_modify_db_settings_parallel_suffix: None
) -> None:
    """SQLite in a file, as the embedded default has it: in memory, threads would share what they don't share there."""
    database = settings.DATABASES["default"]
    if database["ENGINE"] == "django.db.backends.sqlite3":
        database["TEST"]["NAME"] = str(tmp_path_factory.mktemp("database") / "test.sqlite3")


@pytest.fixture(autouse=True, scope="session")
def _emptied_quickly() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        emptying.install(patch)
        yield


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    cache.clear()


@pytest.fixture(autouse=True)
def _no_lease_left() -> Iterator[None]:
    """The renewer's thread outlives a test; its work does not."""
    yield
    lifesigns._renewer._running.clear()
    lifesigns._renewer._ended.clear()


@pytest.fixture(autouse=True)
def _nothing_kept_for_sockets() -> Iterator[None]:
    """Their threads keep connections, and the settings for a second; a test has settings and a database of its own."""
    yield
    standing._settings = standing._Settings()
    if standing.threads._threads:
        count = standing.threads._max_workers
        together = threading.Barrier(count)

        def close(_: int) -> None:
            together.wait(10)
            connections.close_all()

        list(standing.threads.map(close, range(count)))


@pytest.fixture
def database_url(transactional_db: None) -> str:
    """Of the test database, for other processes; what they are to see must be committed."""
    found = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{found['NAME']}"
    return f"postgresql://{found['USER']}@{found['HOST']}:{found['PORT']}/{found['NAME']}"


@pytest.fixture
def postgres_url(database_url: str) -> str:
    """`database_url`, where it is PostgreSQL; skips on SQLite."""
    if connection.vendor != "postgresql":
        pytest.skip("needs PostgreSQL")
    return database_url


@pytest.fixture
def redis_url() -> str:
    """The Redis database of this worker, which the settings use; skips where there is none."""
    if not settings.REDIS_URL:
        pytest.skip("needs Redis")
    return str(settings.REDIS_URL)


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    """A headless Chromium of the system; skips where there is none, and fails in CI."""
    # Playwright keeps an event loop in this thread. The test's own queries run between its steps, never inside one, but
    # Django gives them another connection while the loop is there: it is closed here, and what it wrote was committed.
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    chromium = shutil.which("chromium")
    if chromium is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("needs Chromium")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield opened
        opened.close()
        connections.close_all()


@pytest.fixture
def process_environment(database_url: str) -> dict[str, str]:
    """The environment for a process of the program: the settings of this run, its test database, its Redis."""
    root = str(Path(__file__).resolve().parent.parent)
    return {
        **os.environ,
        "DATABASE_URL": database_url,
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "PYTHONPATH": root,
        "PYTHONUNBUFFERED": "1",
    }


@pytest.fixture
def start_program(process_environment: dict[str, str]) -> Iterator[Callable[..., services.Program]]:
    """Start the program on the test database behind "uvicorn" or "granian"; more environment by keyword."""
    started: list[services.Program] = []

    def start(server: str, **environment: str) -> services.Program:
        program = services.Program(server, {**process_environment, **environment})
        started.append(program)
        program.start()
        return program

    yield start
    for program in started:
        program.remove()


@pytest.fixture
def start_tasks(process_environment: dict[str, str]) -> Iterator[Callable[..., services.Tasks]]:
    """Start Celery's "worker" or "beat" on the test database; more environment by keyword."""
    started: list[services.Tasks] = []

    def start(role: str, *, application: str = "config.celery", **environment: str) -> services.Tasks:
        process = services.Tasks(role, {**process_environment, **environment}, application=application)
        started.append(process)
        process.start()
        return process

    yield start
    for process in started:
        process.remove()


def _private(service: services.Redis | services.Postgres) -> Generator[Any]:
    try:
        service.start()
        yield service
    finally:
        service.remove()


@pytest.fixture
def redis_server() -> Generator[services.Redis]:
    """A Redis for this test alone, to be stopped, killed, paused and started again on the same port."""
    yield from _private(services.Redis())


@pytest.fixture
def postgres_server() -> Generator[services.Postgres]:
    """A PostgreSQL for this test alone, to be stopped, killed, paused and started again on the same port."""
    yield from _private(services.Postgres())
