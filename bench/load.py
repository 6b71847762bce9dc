"""The load: wrk over kept connections, one request as often as the server answers it."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from bench import cpu
from bench.server import Server
from bench.world import EMPTY_BUDGET, World

CONNECTIONS = 16
SECONDS = 2

_SCRIPT = """
wrk.method = {method}
wrk.body = {body}
function done(summary, latency, requests)
  local errors = summary.errors
  io.stdout:write(string.format("\\nresult %d %d %d %d", summary.requests, summary.duration, errors.status,
    errors.connect + errors.read + errors.write + errors.timeout))
end
"""


@dataclass(frozen=True, kw_only=True)
class Target:
    """One request of the load. `refused`: its answers are 400 or above, all but a few at the start of a round.

    `script`, asked before each round, adds to wrk's script what makes each request another one.
    """

    name: str
    server: Server
    path: str
    method: str = "POST"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    refused: bool = False
    script: Callable[[], str] = str


@dataclass(frozen=True, kw_only=True)
class Round:
    """What one round found: calls a second, and CPU in microseconds a call, of the web server and of all servers together."""

    calls: float
    server_cpu: float
    all_cpu: float


def available() -> bool:
    """Whether wrk is installed."""
    return shutil.which("wrk") is not None


def answer(target: Target) -> tuple[int, bytes]:
    """One request by itself: status and body."""
    request = Request(  # noqa: S310 - our own server on loopback
        target.server.url(target.path), method=target.method, headers=dict(target.headers), data=target.body or None
    )
    try:
        with urlopen(request, timeout=30) as response:  # noqa: S310 - as above
            return response.status, response.read()
    except HTTPError as error:
        return error.code, error.read()


def alternate(targets: Sequence[Target], world: World, *, rounds: int) -> dict[str, list[Round]]:
    """The rounds of each target by its name, taken in turns after one that does not count."""
    found: dict[str, list[Round]] = {target.name: [] for target in targets}
    for number in range(rounds + 1):
        for target in targets:
            measured = run(target, world)
            if number:
                found[target.name].append(measured)
    return found


def run(target: Target, world: World) -> Round:
    """One round. Raises RuntimeError when the answers were not the expected ones."""
    own, others = target.server.cpu_seconds(), world.cpu_seconds()
    done = subprocess.run(
        _command(target, world),
        capture_output=True,
        text=True,
        check=True,
        preexec_fn=lambda: os.sched_setaffinity(0, cpu.halves()[1]),
    )
    own, others = target.server.cpu_seconds() - own, world.cpu_seconds() - others
    requests, microseconds, refused, broken = (int(number) for number in done.stdout.rpartition("result ")[2].split())
    expected = requests - refused <= EMPTY_BUDGET if target.refused else not refused
    if not requests or broken or not expected:
        raise RuntimeError(f"{target.name}: {requests} calls, {refused} refused, {broken} broken.\n{done.stdout}")
    return Round(
        calls=requests / microseconds * 1e6, server_cpu=own / requests * 1e6, all_cpu=(own + others) / requests * 1e6
    )


def _command(target: Target, world: World) -> list[str]:
    script = world.folder / "request.lua"
    fixed = _SCRIPT.format(method=json.dumps(target.method), body=json.dumps(target.body.decode()))
    script.write_text(fixed + target.script())
    headers = [part for name, value in target.headers.items() for part in ("-H", f"{name}: {value}")]
    url = target.server.url(target.path)
    return ["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "-s", str(script), *headers, url]
