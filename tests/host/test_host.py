"""The gate and the log are reusable apps: they work in a bare project with other people in it (PS-1)."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="module")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty database of the bare host."""
    database = tmp_path_factory.mktemp("host") / "host.sqlite3"
    manage(_environment(database), "migrate", "--verbosity", "0")
    return database


@pytest.fixture
def environment(migrated: Path, tmp_path: Path) -> dict[str, str]:
    """Of a process of the bare host, with a database of its own; nothing of ours but the code."""
    return _environment(Path(shutil.copy(migrated, tmp_path)))


def _environment(database: Path) -> dict[str, str]:
    ours = {"DATABASE_URL", "REDIS_URL", "API_KEY_PEPPERS", "ACTIVITY_MAC_KEYS", "SECRET_KEY", "BASE_URL"}
    return {
        **{name: value for name, value in os.environ.items() if name not in ours},
        "DJANGO_SETTINGS_MODULE": "tests.host.settings",
        "HOST_DATABASE": str(database),
        "PYTHONPATH": str(ROOT),
    }


def run(environment: dict[str, str], *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def manage(environment: dict[str, str], *arguments: str) -> str:
    return run(environment, "-m", "django", *arguments)


def test_a_bare_host_is_checked_migrated_and_has_nothing_left_to_migrate(environment: dict[str, str]) -> None:
    assert "no issues" in manage(environment, "check", "--fail-level", "WARNING", "--database", "default")
    assert "No changes detected" in manage(environment, "makemigrations", "--check", "--dry-run")


def test_keys_of_another_user_model_list_read_preview_and_write(environment: dict[str, str]) -> None:
    seen = json.loads(run(environment, "-m", "tests.host.drive"))
    assert seen == {
        "before": [
            "system.cancel_approval",
            "system.get_approval",
            "system.list_approvals",
            "system.problems",
            "system.whoami",
        ],
        "refused": "forbidden",
        "tools": [
            "shelf.list_books",
            "shelf.set_copies",
            "system.cancel_approval",
            "system.get_approval",
            "system.list_approvals",
            "system.problems",
            "system.whoami",
        ],
        "preview": [{"label": "Emma", "field": "copies", "before": None, "after": 3, "note": ""}],
        "previewed": 0,
        "written": {"title": "Emma", "copies": 3},
        "read": {"books": [{"title": "Emma", "copies": 3}], "person": seen["person"]},
        "person": "1",
        "key": ["shelf:read", "shelf:write"],
        "entries": ["api.key_created", "api.request", "api.request", "shelf.copies_set"],
        "verified": True,
        "owner": True,
        "inactive": [401, "application/problem+json", True],
        "missing": "not_found",
    }


def test_people_with_another_user_model_make_rotate_and_revoke_keys_of_their_own(environment: dict[str, str]) -> None:
    assert json.loads(run(environment, "-m", "tests.host.own_keys")) == {
        "made": 200,
        "rotated": [401, 200],
        "revoked": 401,
        "listed": [200, 2],
        "not_there": 404,
        "owners": [1],
        "actors": ["1"],
        "approvals": [403, 403],
        "visitor": 302,
    }


def test_operators_with_another_user_model_set_the_gate(environment: dict[str, str]) -> None:
    assert json.loads(run(environment, "-m", "tests.host.settings_api")) == {
        "closed": [1, 2, 2],
        "said": True,
        "then": [0, 2],
        "unknown": [True, True],
        "stored": {"api_session_write_modules": ["shelf"], "accounts_email_required": True},
        "actor": "1",
    }


def test_the_commands_work_with_another_user_model(environment: dict[str, str]) -> None:
    manage(environment, "createsuperuser", "--noinput", "--email", "owner@example.org")
    made = manage(
        environment, "create_key", "--owner", "owner@example.org", "--name", "script", "--scope", "shelf:read", "--json"
    )
    assert set(json.loads(made)) == {"id", "key"}
    assert "shelf.list_books" in manage(environment, "list_tools")


def test_a_host_without_structlog_gets_plain_lines_without_local_variables(environment: dict[str, str]) -> None:
    script = """
import django
django.setup()
import structlog
def fail():
    key = "a-canary-of-a-key"
    raise LookupError
try:
    fail()
except LookupError as error:
    structlog.get_logger("gate").error("call_failed", tool="a.tool", exc_info=error)
"""
    plain = {**environment, "DJANGO_SETTINGS_MODULE": "tests.host.plain"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=plain, cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "call_failed" in done.stderr
    assert "LookupError" in done.stderr
    assert (done.stdout + done.stderr).count("a-canary-of-a-key") == 0


def test_the_gates_own_tests_pass_in_the_bare_host(environment: dict[str, str]) -> None:
    inner = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    inner |= {"TEST_DATABASE": "sqlite"}
    tests = [f"tests/api/test_{name}.py" for name in ("call", "effect", "flow_table", "guard", "scopes")]
    out = run(inner, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--ds", "tests.host.settings", *tests)
    assert " passed" in out
    assert " failed" not in out
