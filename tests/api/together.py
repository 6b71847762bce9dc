"""Calls at the same moment, from several processes or from threads with connections of their own."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from django.db import connection

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


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    """What the calls answer, each in a thread with a connection of its own, all started together."""
    ready = threading.Barrier(len(calls))

    def one(call: Callable[[], Any]) -> Any:
        try:
            ready.wait()
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(one, calls))
