"""The official suite's own verdict on 2026-07-28: what passes here, and what needs a provider of things that this server has none of."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.api.models import Confirmation
from tests.api import factories
from tests.services import Program

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent

# Scored scenarios that pass against the tools of the fixture.
PASSED = {
    "tools-list",
    "tools-call-simple-text",
    "tools-call-error",
    "server-sse-multiple-streams",
    "sep-2164-resource-not-found",
    "dns-rebinding-protection",
    "input-required-result-request-state",
    "input-required-result-tampered-state",
    "input-required-result-missing-input-response",
    "input-required-result-unsupported-methods",
    "input-required-result-ignore-extra-params",
    "input-required-result-validate-input",
}


class FixtureProgram(Program):
    """The fixture project behind granian."""

    def command(self) -> list[str]:
        options = ["--interface", "wsgi", "--workers", "1", "--blocking-threads", "8", "--no-ws"]
        program = [sys.executable, "-m", "granian", "--host", "127.0.0.1", "--port", str(self.port)]
        return [*program, *options, "tests.conformance.wsgi:application"]


@pytest.fixture
def program(postgres_url: str, process_environment: dict[str, str]) -> Iterator[FixtureProgram]:
    _, text = factories.make_key(scopes=["test:run"], budget=100_000)
    environment = {"DJANGO_SETTINGS_MODULE": "tests.conformance.settings", "CONFORMANCE_KEY": text}
    started = FixtureProgram("granian", {**process_environment, **environment})
    try:
        started.start()
        yield started
    finally:
        started.remove()


@pytest.fixture(scope="session")
def suite() -> Path:
    """The pinned suite, installed without running anything of it; skips where there is no npm, and fails in CI."""
    home = ROOT / "var" / "mcp-conformance"
    lock = (HERE / "package-lock.json").read_text()
    stamp = home / "installed.json"
    if not stamp.exists() or stamp.read_text() != lock:
        home.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, home / name)
        install = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        if (
            shutil.which("npm") is None
            or subprocess.run(install, cwd=home, check=False, capture_output=True).returncode
        ):
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("the conformance suite can't be installed")
        stamp.write_text(lock)
    return home / "node_modules"


def summary(suite: Path, program: FixtureProgram, folder: Path) -> tuple[set[str], set[str]]:
    """Which scenarios the suite calls passed and failed."""
    script = suite / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [str(suite / "node" / "bin" / "node"), str(script), "server", "--requirements", "2026-07-28"]
    ran = subprocess.run(
        [*command, "--url", f"{program.url}/mcp"], cwd=folder, capture_output=True, text=True, timeout=300, check=False
    )
    print(ran.stdout.partition("=== SUMMARY ===")[2])  # noqa: T201  # the suite's own words, shown where the test fails
    lines = re.findall(r"^([✓✗]) (\S+): \d+ passed", ran.stdout, re.MULTILINE)
    return {name for mark, name in lines if mark == "✓"}, {name for mark, name in lines if mark == "✗"}


def test_the_suite_passes_what_needs_no_provider(suite: Path, program: FixtureProgram, tmp_path: Path) -> None:
    passed, failed = summary(suite, program, tmp_path)
    assert passed >= PASSED, PASSED - passed
    assert "http-header-validation" in passed
    assert failed  # prompts, resources, images, other questions: what this server has none of
    states = Confirmation.objects.filter(tool="test.input_required_result_request_state").values_list(
        "state", flat=True
    )
    assert "used" in states
    tampered = Confirmation.objects.filter(tool="test.input_required_result_tampered_state")
    assert set(tampered.values_list("state", flat=True)) == {"waiting"}
