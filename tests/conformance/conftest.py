"""The suite, the fixture project, and what the runs said: printed at the end, since a verdict is only worth its words."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import npm
from tests.api import factories
from tests.conformance.suite import FixtureProgram

PROVIDER = "tests.conformance.fixture.provider.Fixture"


@pytest.fixture(scope="session")
def suite() -> Path:
    """The pinned suite; skips where it can't be installed, and fails in CI."""
    try:
        return npm.installed("conformance")
    except npm.Missing as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(error))


@pytest.fixture
def start(postgres_url: str, process_environment: dict[str, str]) -> Iterator[Callable[[str], FixtureProgram]]:
    """Starts the fixture project with the provider of that name, or without one."""
    with ExitStack() as ends:

        def started(provider: str) -> FixtureProgram:
            _, text = factories.make_key(scopes=["test:run"], budget=100_000)
            own = {"DJANGO_SETTINGS_MODULE": "tests.conformance.settings", "CONFORMANCE_KEY": text}
            environment = {**process_environment, **own, "CONFORMANCE_PROVIDER": provider}
            program = FixtureProgram("granian", environment)
            ends.callback(program.remove)
            program.start()
            return program

        yield started
