"""The servers that are measured: granian, one WSGI worker, the same threads for the gate and for the baseline; uvicorn for sockets."""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

from bench import cpu
from tests import services

THREADS = 8
ROOT = Path(__file__).resolve().parent.parent


class Server:
    """`with Server(target, log): …`. Its log lines go to a file, as a service manager would take them."""

    def __init__(self, target: str, log: Path) -> None:
        self.target = target
        self.log = log
        self.port = services.free_port()

    def command(self) -> list[str]:
        """Its command line."""
        command = [sys.executable, "-m", "granian", "--interface", "wsgi", "--workers", "1"]
        command += ["--blocking-threads", str(THREADS), "--host", "127.0.0.1", "--port", str(self.port)]
        return [*command, "--no-ws", self.target]

    def __enter__(self) -> Self:
        with self.log.open("ab") as out:
            self._process = subprocess.Popen(self.command(), cwd=ROOT, stdout=out, stderr=out, env=os.environ)
        self._wait()
        cpu.pin(self._process.pid, cpu.halves()[0])
        return self

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)

    def url(self, path: str) -> str:
        """Of a path on this server."""
        return f"http://127.0.0.1:{self.port}{path}"

    def cpu_seconds(self) -> float:
        """Used by its processes so far."""
        return cpu.seconds(self._process.pid)

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"{self.target} does not start: {self.log.read_text()[-2000:]}") from None
                time.sleep(0.05)
            else:
                return


class SocketServer(Server):
    """One process of uvicorn, as production has it for sockets."""

    def command(self) -> list[str]:
        """As docs/reference/settings.md has it."""
        options = ["--port", str(self.port), "--lifespan", "off", "--no-proxy-headers", "--ws-max-size", "65536"]
        return [sys.executable, "-m", "uvicorn", *options, self.target]
