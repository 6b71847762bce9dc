"""The live server holds what its documents promise: schemathesis with all its checks.

A small budget here; `make fuzz-openapi` runs the long one. OPENAPI_EXAMPLES is the number of examples an operation, OPENAPI_SECONDS the
time for a document.
"""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings

from apps.catalogue import demo
from tests.api import factories
from tests.services import Program

HERE = Path(__file__).parent
SCHEMATHESIS = Path(settings.BASE_DIR) / "var/schemathesis/bin/schemathesis"
EXAMPLES = os.environ.get("OPENAPI_EXAMPLES", "6")
SECONDS = os.environ.get("OPENAPI_SECONDS", "45")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


@pytest.fixture
def program(transactional_db: None, start_program: Callable[..., Program]) -> Program:
    """The program with the demo's products; no budget is in the way, and a proxy names the network of each call."""
    if not SCHEMATHESIS.exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("needs schemathesis: make var/schemathesis")
    demo.fill()
    factories.set_setting("api_public_enabled", True)
    for name in ("api_network_budget", "api_token_budget"):
        factories.set_setting(name, 1_000_000)
    return start_program("uvicorn", TRUSTED_PROXY_HOPS="1")


def run(program: Program, path: str, tmp_path: Path, *headers: str) -> None:
    command = [
        str(SCHEMATHESIS),
        "--config-file",
        str(HERE / "schemathesis.toml"),
        *("run", f"{program.url}{path}", "--url", program.url),
        *("--max-examples", EXAMPLES, "--max-time", SECONDS, "--checks", "all", "--generation-database", "none"),
        *("--warnings", "off", "--no-color", "--seed", os.environ.get("OPENAPI_SEED", "1")),
        *(part for header in headers for part in ("--header", header)),
    ]
    # Its hooks are found by the name of a module.
    environment = {
        "PATH": os.environ["PATH"],
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(HERE),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=tmp_path)
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]


@pytest.mark.parametrize("requires_approval", [False, True])
def test_a_key_finds_the_server_as_its_document_says(
    program: Program, tmp_path: Path, *, requires_approval: bool
) -> None:
    _, text = factories.make_key(
        scopes=["catalogue:read", "catalogue:write"], budget=1_000_000, requires_approval=requires_approval
    )
    run(program, "/api/v1/openapi.json", tmp_path, f"Authorization: Bearer {text}")


def test_a_visitor_finds_the_server_as_its_document_says(program: Program, tmp_path: Path) -> None:
    run(program, "/api/v1/public/openapi.json", tmp_path)
