"""The path of a module author, with the very text of docs/how-to/declare-a-tool.md: a new app, no other one touched."""

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group

from apps.activity.models import Entry
from tests.api import factories
from tests.api.wire import Answer, connect, request
from tests.services import Program

pytestmark = pytest.mark.sqlite

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs/how-to/declare-a-tool.md").read_text()

SETTINGS = """
from config.settings import *

INSTALLED_APPS = [*INSTALLED_APPS, "roles"]
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


def calls() -> Iterator[tuple[str, bytes, Any]]:
    """Path, body and answer of each call that the page shows."""
    curls = [block for block in blocks("sh") if block.startswith("curl")]
    for curl, answer in zip(curls, blocks("json"), strict=True):
        (path,) = re.findall(r"\$BASE(\S+)", curl)
        (body,) = re.findall(r"-d '(.*)'", curl)
        yield path, body.encode(), json.loads(answer)


@pytest.fixture
def site(tmp_path: Path, process_environment: dict[str, str]) -> dict[str, str]:
    """The environment of a site with the new app."""
    app = tmp_path / "roles"
    app.mkdir()
    (app / "__init__.py").touch()
    (app / "tools.py").write_text(blocks("python")[0])
    (tmp_path / "site_settings.py").write_text(SETTINGS)
    changed = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "DJANGO_SETTINGS_MODULE": "site_settings"}
    return {**process_environment, **changed}


def manage(site: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    ended = subprocess.run(command, env=site, capture_output=True, text=True, check=False, timeout=60)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_module_of_the_page_has_fifteen_lines() -> None:
    lines = [line for line in blocks("python")[0].splitlines() if line.strip()]
    assert len(lines) == 15


def test_a_new_app_gives_working_tools_without_touching_another(
    site: dict[str, str], start_program: Callable[..., Program]
) -> None:
    Group.objects.create(name="Approvers")
    owner = factories.make_owner(permissions=["auth.view_group", "auth.change_group"])

    assert "roles.rename" in manage(site, "list_tools")
    scopes = ["--scope", "roles:read", "--scope", "roles:write"]
    key = json.loads(manage(site, "create_key", "--owner", owner.email, "--name", "roles", *scopes, "--json"))["key"]
    program = start_program("uvicorn", **{name: site[name] for name in ("PYTHONPATH", "DJANGO_SETTINGS_MODULE")})

    def ask(method: str, path: str, body: bytes | None = None) -> Answer:
        with connect(program.port) as one:
            one.send(request(method, path, f"Authorization: Bearer {key}", body=body))
            return one.read(method)

    listed = {tool["name"]: tool for tool in ask("GET", "/api/v1/tools").json()["tools"]}
    assert {"roles.find", "roles.rename"} < set(listed)
    assert listed["roles.rename"]["input_schema"]["required"] == ["old", "new"]
    assert listed["roles.rename"]["annotations"]["read_only"] is False

    for path, body, answer in calls():
        assert ask("POST", path, body).json() == answer
    assert list(Group.objects.values_list("name", flat=True)) == ["Reviewers"]
    entries = Entry.objects.filter(action="api.request", module="roles").order_by("created_at")
    assert [(entry.target, entry.metadata["outcome"]) for entry in entries] == [
        ("roles.rename", "preview"),
        ("roles.rename", "ok"),
    ]


def test_a_mistake_in_the_new_app_stops_every_start_with_its_name_and_its_mend(
    site: dict[str, str], tmp_path: Path
) -> None:
    tools = tmp_path / "roles" / "tools.py"
    tools.write_text(tools.read_text().replace("@rename.preview", ""))
    for command in (["manage.py", "check"], ["-c", "import config.wsgi"], ["-m", "config.serve", "--port", "0"]):
        ended = subprocess.run(
            [sys.executable, *command], env=site, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
        )
        said = ended.stdout + ended.stderr
        assert ended.returncode != 0
        assert "The tool roles.rename: it is a write without a preview." in said
        assert "Mend: add @rename.preview" in said
