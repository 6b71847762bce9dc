"""The live server holds what its documents promise: schemathesis with all its checks, as three kinds of callers at once.

A small budget here; `make fuzz-openapi` runs the long one. OPENAPI_EXAMPLES is the number of examples an operation, OPENAPI_SECONDS the
time for a document, which is then used up.
"""

import os
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from django.conf import settings

from apps.catalogue import demo
from tests.api import factories
from tests.services import Program

HERE = Path(__file__).parent
SCHEMATHESIS = Path(settings.BASE_DIR) / "var/schemathesis/bin/schemathesis"
EXAMPLES = os.environ.get("OPENAPI_EXAMPLES", "4")
SECONDS = os.environ.get("OPENAPI_SECONDS", "")

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.alone]


@pytest.fixture
def program(transactional_db: None, start_program: Callable[..., Program]) -> Program:
    """The program with the demo's products; no budget is in the way, and a proxy names the network of each call."""
    if not SCHEMATHESIS.exists():
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "needs schemathesis: make var/schemathesis/stamp"
        )
    demo.fill()
    factories.set_setting("api_public_enabled", True)
    for name in ("api_network_budget", "api_token_budget"):
        factories.set_setting(name, 1_000_000)
    return start_program("uvicorn", TRUSTED_PROXY_HOPS="1")


def run(program: Program, path: str, home: Path, *headers: str) -> subprocess.CompletedProcess[str]:
    home.mkdir()
    command = [
        str(SCHEMATHESIS),
        "--config-file",
        str(HERE / "schemathesis.toml"),
        *("run", f"{program.url}{path}", "--url", program.url),
        *("--max-examples", EXAMPLES, "--checks", "all", "--generation-database", "none"),
        *(("--max-time", SECONDS) if SECONDS else ()),
        *("--warnings", "off", "--no-color", "--seed", os.environ.get("OPENAPI_SEED", "1")),
        *(part for header in headers for part in ("--header", header)),
    ]
    # Its hooks are found by the name of a module.
    environment = {
        "PATH": os.environ["PATH"],
        "SCHEMATHESIS_HOOKS": "hooks",
        "PYTHONPATH": str(HERE),
        "HOME": str(home),
    }
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=home)


def authorization(*, requires_approval: bool) -> str:
    _, text = factories.make_key(
        scopes=["catalogue:read", "catalogue:write"], budget=1_000_000, requires_approval=requires_approval
    )
    return f"Authorization: Bearer {text}"


def test_the_server_does_what_its_documents_say(program: Program, tmp_path: Path, subtests: pytest.Subtests) -> None:
    callers: dict[str, tuple[str, ...]] = {
        "a key": ("/api/v1/openapi.json", authorization(requires_approval=False)),
        "a key that requires approval": ("/api/v1/openapi.json", authorization(requires_approval=True)),
        "a visitor": ("/api/v1/public/openapi.json",),
    }
    with ThreadPoolExecutor() as pool:
        runs = {
            caller: pool.submit(run, program, path, tmp_path / caller, *headers)
            for caller, (path, *headers) in callers.items()
        }
    for caller, running in runs.items():
        with subtests.test(caller):
            done = running.result()
            print(f"As {caller}:\n{done.stdout[-3_000:]}")  # noqa: T201 - the figures of the long run
            assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-5_000:]
