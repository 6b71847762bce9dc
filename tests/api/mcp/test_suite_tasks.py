"""The official suite's scenarios of tasks (MC-4), with an approver in the test who approves what is not to wait."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connections

from apps.api import approvals, deciding, registry, runs
from apps.api.deciding import Decision
from apps.api.models import Approval
from tests import npm
from tests.api import factories
from tests.api.mcp.suite.tools import MODULES, SCOPES
from tests.api.test_approval_races import make_approver
from tests.conformance.suite import FixtureProgram

pytestmark = pytest.mark.alone

# What the suite wants to end without any result: its worker dies.
LOST = "protocol.error_job"

# What the suite wants to run so long is to be cancelled.
LONG = 10

SCENARIOS = (
    "tasks-capability-negotiation",
    "tasks-lifecycle",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
)


@pytest.fixture
def program(postgres_url: str, process_environment: dict[str, str]) -> Iterator[FixtureProgram]:
    _, text = factories.make_key(scopes=SCOPES, requires_approval=True, budget=100_000)
    own = {"DJANGO_SETTINGS_MODULE": "tests.api.mcp.suite.settings", "CONFORMANCE_KEY": text}
    started = FixtureProgram("granian", {**process_environment, **own})
    with ExitStack() as ends:
        ends.callback(started.remove)
        started.start()
        yield started


@pytest.fixture
def suite() -> Path:
    """The pinned suite; skips where it can't be installed, and fails in CI."""
    try:
        return npm.installed("conformance")
    except npm.Missing as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(error))


@contextmanager
def approving() -> Iterator[None]:
    """A person who looks at the queue again and again, and a worker that runs what they approve."""
    over, approver = threading.Event(), make_approver()

    def work() -> None:
        try:
            while not over.wait(0.2):
                for approval in Approval.objects.filter(state="pending"):
                    if (approval.arguments or {}).get("seconds", 0) < LONG:
                        deciding.decide(
                            approver.ref, approval.pk, Decision(approve=True, version=1), impersonated=False
                        )
                        (lose if approval.tool == LOST else runs.run)(approval.pk)
        finally:
            connections.close_all()

    thread = threading.Thread(target=work)
    with registry.using(*MODULES):
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(30)


def lose(uuid: UUID) -> None:
    """The worker that took it gives no sign of life, and a sweep says so."""
    started = approvals.start(Approval.objects.select_related("key").get(pk=uuid))
    assert started is not None
    assert approvals.fail(started, "interrupted")


def checks(suite: Path, program: FixtureProgram, scenario: str, folder: Path) -> list[dict[str, Any]]:
    script = suite / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = ["node", str(script), "server", "--url", f"{program.url}/mcp", "--output-dir", str(folder)]
    options = ["--spec-version", "2026-07-28", "--force", "--timeout", "120000", "--scenario", scenario]
    ran = subprocess.run(
        [*command, *options], env=npm.environment(suite), capture_output=True, text=True, timeout=150, check=False
    )
    print(ran.stdout, ran.stderr)  # noqa: T201  # the suite's own words, shown where the test fails
    (found,) = folder.glob(f"server-{scenario}-2*/checks.json")
    checked: list[dict[str, Any]] = json.loads(found.read_text())
    return checked


def test_the_suite_finds_the_tasks_as_the_extension_has_them(
    suite: Path, program: FixtureProgram, tmp_path: Path, settings: Any, subtests: pytest.Subtests
) -> None:
    settings.API_SEND_TASK = "tests.api.test_approvals.keep_task"
    with approving():
        for scenario in SCENARIOS:
            with subtests.test(scenario):
                found = checks(suite, program, scenario, tmp_path)
                assert len(found) > 1
                assert {check["id"] for check in found if check["status"] != "SUCCESS"} == set()
