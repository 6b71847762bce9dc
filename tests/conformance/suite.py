"""Runs the official suite against the fixture project, and reads its verdict."""

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests import npm
from tests.services import Program

_SCRIPT = Path("@modelcontextprotocol", "conformance", "dist", "index.js")
_LINE = re.compile(r"^([✓✗]) (\S+): \d+ passed", re.MULTILINE)
_NOT_SCORED = re.compile(r"^  [✓✗] (\S+) \((?:extension|pending|added-after-release)\)$", re.MULTILINE)


class FixtureProgram(Program):
    """The fixture project behind granian."""

    def command(self) -> list[str]:
        options = ["--interface", "wsgi", "--workers", "1", "--blocking-threads", "8", "--no-ws"]
        program = [sys.executable, "-m", "granian", "--host", "127.0.0.1", "--port", str(self.port)]
        return [*program, *options, "tests.conformance.wsgi:application"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the suite says of the scenarios that a revision requires. `warned` passed, with a warning in place of a check.

    `extra` are those that run for visibility and count for nothing, with whether they pass. `words` is its own report.
    """

    passed: frozenset[str]
    failed: frozenset[str]
    warned: frozenset[str]
    extra: dict[str, bool]
    exit_code: int
    words: str


def run(modules: Path, program: Program, folder: Path, revision: str, *options: str) -> Verdict:
    """One run of what the revision requires. The suite keeps each scenario's checks in the folder."""
    command = ["node", str(modules / _SCRIPT), "server", "--requirements", revision, "--url", f"{program.url}/mcp"]
    ran = subprocess.run(
        [*command, "--output-dir", str(folder), *options],
        env=npm.environment(modules),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    words = ran.stdout.partition("=== SUMMARY ===")[2] + ran.stderr
    lines = {name: mark == "✓" for mark, name in _LINE.findall(words)}
    unscored = set(_NOT_SCORED.findall(words))
    scored = lines.keys() - unscored
    passed = frozenset(name for name in scored if lines[name])
    return Verdict(
        passed=passed,
        failed=frozenset(scored) - passed,
        warned=frozenset(name for name in passed if "WARNING" in _statuses(folder, name)),
        extra={name: lines[name] for name in unscored},
        exit_code=ran.returncode,
        words=words,
    )


def _statuses(folder: Path, scenario: str) -> set[str]:
    """The outcomes of the scenario's checks."""
    (found,) = folder.glob(f"server-{scenario}-2*/checks.json")
    return {str(check["status"]) for check in json.loads(found.read_text())}
