"""The official Python clients, old and new, over a real socket (MC-5)."""

import json
import os
import subprocess
import venv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from apps.catalogue.models import Product
from tests.api import factories
from tests.catalogue.factories import make_product
from tests.services import Program

ROOT = Path(__file__).resolve().parents[3]


def interpreter(major: str) -> Path:
    """A Python with the client of that major version and nothing else: the two can't share one environment."""
    home = ROOT / "var" / f"mcp-client-{major}"
    wanted = ROOT / "requirements" / f"mcp-client-{major}.txt"
    stamp, python = home / "installed.txt", home / "bin" / "python"
    if not stamp.exists() or stamp.read_text() != wanted.read_text():
        venv.create(home, with_pip=True, clear=True)
        install = [
            str(python),
            "-m",
            "pip",
            "--disable-pip-version-check",
            "-qq",
            "install",
            "--require-hashes",
            "-r",
            str(wanted),
        ]
        if subprocess.run(install, check=False, capture_output=True).returncode:
            (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
                f"the MCP client {major}.x can't be installed"
            )
        stamp.write_text(wanted.read_text())
    return python


def drive(program: Program, what: str, *, sku: str, **key: Any) -> dict[str, Any]:
    machine = factories.make_machine(scopes=["catalogue:read", "catalogue:write"], **key)
    python = interpreter("1" if what == "handshake" else "2")
    script = str(Path(__file__).with_name("official.py"))
    command = [str(python), script, f"{program.url}/mcp", str(machine.text), sku, what]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr[-3_000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


VERSIONS = {
    "handshake": "2025-11-25",
    "legacy": "2025-11-25",
    "auto": "2026-07-28",
    "2026-07-28": "2026-07-28",
    "eliciting": "2026-07-28",
}


@pytest.mark.parametrize("server", ["uvicorn", "granian"])
def test_official_clients_list_read_confirm_and_survive_refusals(
    server: str, postgres_url: str, start_program: Callable[..., Program], subtests: pytest.Subtests
) -> None:
    program = start_program(server)
    for what, version in VERSIONS.items():
        with subtests.test(what):
            product = make_product()
            found = drive(program, what, sku=product.sku)
            assert found["version"] == version
            assert {"catalogue_list_products", "catalogue_delete_products", "system_whoami"} <= set(found["tools"])
            assert json.loads(found["read"]["content"][0]["text"]) == found["read"]["structuredContent"]
            for name in ("refused", "unknown"):
                assert found[name]["isError"] is True
            assert found["done"]["isError"] is False
            assert found["after"]["structuredContent"]["key"]["name"] == "machine"
            assert len(found["asked"]) == (1 if what == "eliciting" else 0)
            assert ("confirm_token" in str(found["held"])) is (what != "eliciting")
            assert not Product.objects.filter(pk=product.pk).exists()
            if what != "2026-07-28":  # a pinned revision asks nothing before its first call
                assert "confirm_token" in found["instructions"]


@pytest.mark.parametrize("what", ["handshake", "auto"])
def test_official_clients_get_a_pending_approval_at_once(
    what: str, postgres_url: str, start_program: Callable[..., Program]
) -> None:
    product = make_product()
    found = drive(start_program("uvicorn"), what, sku=product.sku, requires_approval=True)
    assert found["held"]["structuredContent"]["status"] == "pending_approval"
    assert Product.objects.filter(pk=product.pk).exists()
