"""Equal calls from several processes at the same moment."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.api.factories import Machine
from tests.api.once import Gate

PROCESSES, THREADS = 4, 13


def call_together(
    machine: Machine, tool: str, body: dict[str, Any], *, environment: Mapping[str, str], folder: Path
) -> list[dict[str, Any]]:
    """The answers to 52 equal calls from 4 processes, all of which wait until the last one is ready."""
    gate = Gate(folder)
    wanted = {"text": machine.text, "tool": tool, "body": body, "threads": THREADS, "gate": str(gate.path)}
    with gate.closed():
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.api.once_process", json.dumps(wanted)],
                env=environment,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(PROCESSES)
        ]
        for process in processes:
            gate.wait_for(f"ready.{process.pid}", seconds=90)
    return [row for process in processes for row in json.loads(process.communicate(timeout=120)[0].splitlines()[-1])]
