"""The official suite's own verdict (MC-5): on 2026-07-28 with and without the provider, and on the handshake before it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from apps.api.models import Confirmation
from tests.conformance import expected
from tests.conformance.conftest import PROVIDER
from tests.conformance.suite import FixtureProgram, Verdict, run

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# The suite gives up some answers after half a second.
alone = pytest.mark.alone

Start = Callable[[str], FixtureProgram]


def shown(verdict: Verdict) -> Verdict:
    """The suite's own words, for whoever reads a test that failed."""
    print(verdict.words)  # noqa: T201
    return verdict


def states(tool: str) -> set[str]:
    found = Confirmation.objects.filter(tool=f"test.input_required_result_{tool}")
    return set(found.values_list("state", flat=True))


@alone
def test_with_the_provider_all_that_is_required_passes(suite: Path, start: Start, tmp_path: Path) -> None:
    verdict = shown(run(suite, start(PROVIDER), tmp_path, expected.REVISION))
    assert (verdict.passed, verdict.failed, verdict.warned) == (expected.REQUIRED, frozenset(), frozenset())
    assert verdict.exit_code == 0
    assert verdict.extra == {name: what.startswith("passes") for name, what in expected.EXTRA.items()}


@alone
def test_without_it_the_tools_pass_and_nothing_else(suite: Path, start: Start, tmp_path: Path) -> None:
    verdict = shown(run(suite, start(""), tmp_path, expected.REVISION))
    assert (verdict.passed, verdict.failed) == (expected.OWN, frozenset(expected.PROVIDED))
    assert verdict.warned == expected.WARNED
    assert "used" in states("request_state")
    assert states("tampered_state") == {"waiting"}


@alone
def test_before_it_only_what_needs_a_session_fails(suite: Path, start: Start, tmp_path: Path) -> None:
    baseline = HERE / f"stateless-{expected.BEFORE}.yml"
    verdict = shown(run(suite, start(PROVIDER), tmp_path, expected.BEFORE, "--expected-failures", str(baseline)))
    assert verdict.exit_code == 0
    assert verdict.failed == expected.STATEFUL | {"json-schema-2020-12"}  # the latter is not scored
    # Both look for a session and find none; the latter is not scored.
    assert verdict.warned == {"server-sse-multiple-streams", "server-sse-polling"}


@pytest.mark.sqlite
def test_the_report_is_what_the_runs_are_held_to() -> None:
    document = (ROOT / "docs" / "reference" / "mcp-conformance.md").read_text()
    assert "\n".join(expected.report()) in document
    assert "\n".join(expected.extra()) in document
