"""The size of the machine and the versions that ran: a figure without them says nothing."""

import os
import platform
import subprocess
from importlib.metadata import version
from pathlib import Path

from bench.world import World

_PACKAGES = ("django", "djangorestframework", "psycopg", "redis", "granian")


def describe(world: World) -> dict[str, object]:
    """By name, in the order in which it is printed."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": len(os.sched_getaffinity(0)),
        "processor": _processor(),
        "memory_gib": round(memory, 1),
        "load_before": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **{name: version(name) for name in _PACKAGES},
        "postgresql": world.postgres.version(),
        "redis_server": world.redis.version(),
        "wrk": _wrk(),
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _wrk() -> str:
    said = subprocess.run(["wrk", "-v"], capture_output=True, text=True, check=False).stdout
    return said.split()[1] if said.startswith("wrk ") else "of unknown version"
