"""Sessions of the official clients, Python's and TypeScript's, 1.x and 2.x: each a process that does what the test tells it."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import venv
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests import npm

ROOT = Path(__file__).resolve().parents[3]
HERE = Path(__file__).parent

# How they connect, and the revision that each of them ends at.
WAYS = {
    "handshake": "2025-11-25",
    "legacy": "2025-11-25",
    "auto": "2026-07-28",
    "2026-07-28": "2026-07-28",
    "eliciting": "2026-07-28",
    "ts-handshake": "2025-11-25",
    "ts-legacy": "2025-11-25",
    "ts-auto": "2026-07-28",
    "ts-2026-07-28": "2026-07-28",
    "ts-eliciting": "2026-07-28",
}
ASKING = ("eliciting", "ts-eliciting")

# Asks nothing before its first call, so that it is told nothing either.
SILENT = "2026-07-28"

_SECONDS = 60


class Session:
    """`with Session(url, key, how) as session`: one client, connected once, whose calls go over its own connection."""

    def __init__(self, url: str, key: str | None, how: str) -> None:
        self.how = how
        self._process = subprocess.Popen(
            [*_program(how), url, str(key), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.told = self._answer()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()

    def ask(self, **wish: Any) -> dict[str, Any]:
        """What the client makes of the wish, raised or not."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wish).encode() + b"\n")
        self._process.stdin.flush()
        return self._answer()

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """The result of a call, which the client raised nothing about. What it asked its person is in `asked`."""
        answer = self.ask(call=tool, arguments=arguments)
        assert "raised" not in answer, answer
        return {**answer["result"], "asked": answer["asked"]}

    def content(self, tool: str, **arguments: Any) -> Any:
        """What the tool answered well."""
        result = self.call(tool, **arguments)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        return result["structuredContent"]

    def problem(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """What the tool was refused with."""
        result = self.call(tool, **arguments)
        assert result["isError"] is True, result
        found: dict[str, Any] = json.loads(result["content"][0]["text"])
        return found

    def tools(self) -> list[str]:
        """The names that the client lists."""
        return [tool["name"] for tool in self.ask(list=True)["result"]["tools"]]

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        ready, _, _ = select.select([self._process.stdout], [], [], _SECONDS)
        line = self._process.stdout.readline() if ready else b""
        if not line:
            self._process.kill()
            pytest.fail(f"{self.how} says nothing: {self._process.communicate()[1].decode()[-3_000:]}")
        found: dict[str, Any] = json.loads(line)
        return found


def _program(how: str) -> list[str]:
    if how.startswith("ts-"):
        return _typescript()
    return [str(python("1" if how == "handshake" else "2")), str(HERE / "official.py")]


def _typescript() -> list[str]:
    """Its imports are looked for beside the script, so that the script goes where they are."""
    try:
        modules = npm.installed("mcp-clients")
    except npm.Missing as reason:
        _unavailable(f"The TypeScript clients of MCP: {reason}")
    script, mine = modules.parent / "official.mjs", modules.parent / f"official-{os.getpid()}.mjs"
    shutil.copy(HERE / "official.mjs", mine)
    mine.replace(script)  # whole at every moment, also for the tests beside this one
    node = shutil.which("node", path=npm.environment(modules)["PATH"])
    return [str(node), str(script)]


def python(major: str) -> Path:
    """A Python with the client of that major version and nothing else: the two can't share one environment."""
    home = ROOT / "var" / f"mcp-client-{major}"
    wanted = ROOT / "requirements" / f"mcp-client-{major}.txt"
    stamp, program = home / "installed.txt", home / "bin" / "python"
    home.parent.mkdir(exist_ok=True)
    with home.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists() or stamp.read_text() != wanted.read_text():
            venv.create(home, with_pip=True, clear=True)
            pip = [str(program), "-m", "pip", "--disable-pip-version-check", "-qq"]
            install = [*pip, "install", "--require-hashes", "-r", str(wanted)]
            if subprocess.run(install, check=False, capture_output=True).returncode:
                _unavailable(f"The MCP client {major}.x of Python can't be installed")
            stamp.write_text(wanted.read_text())
    return program


def _unavailable(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)
