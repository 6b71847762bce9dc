"""SP-4, open sockets: how long an event takes from the process that makes it to every client that listens, and whether one is lost."""

import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from bench import cpu, people
from bench.figures import Figure
from bench.people import Member
from bench.server import ROOT, SocketServer
from bench.world import HOST, World

SOCKETS = 2_000
EVENTS_A_SECOND = 200
SECONDS = 30
WARM_UP_SECONDS = 3
PATIENCE_SECONDS = 10
WANTED_P95_MS = 50

# Event by event: when it was made, and when each client that was told of it was, in nanoseconds of the machine's clock.
Times = dict[str, list[int]]


def measure(world: World) -> list[Figure]:
    """Ours, and beside it the same library with none of our checks."""
    members = people.make(SOCKETS)
    cpu.pin(os.getpid(), cpu.halves()[1])
    ours = _run("config.asgi:application", "/ws/agent/", members, world)
    bare = _run("bench.baseline.asgi:application", "/", members, world)
    p95, bare_p95 = _percentile(ours[0], 95), _percentile(bare[0], 95)
    name = f"{SOCKETS:,} sockets, {EVENTS_A_SECOND} events a second for {SECONDS} s"
    return [
        Figure(requirement="SP-4", name=f"{name}: lost", value=ours[1], unit="events", wanted="0", met=not ours[1]),
        _milliseconds("their time, median", _percentile(ours[0], 50), _percentile(bare[0], 50)),
        Figure(
            requirement="SP-4",
            name="their time, 95 of 100 under",
            value=p95,
            unit="ms",
            baseline=bare_p95,
            wanted=f"< {WANTED_P95_MS} ms",
            met=p95 < WANTED_P95_MS,
        ),
        _milliseconds("their time, 99 of 100 under", _percentile(ours[0], 99), _percentile(bare[0], 99)),
        Figure(
            requirement="SP-4",
            name="CPU of the socket process an event, its checks included",
            value=ours[2],
            unit="us",
            baseline=bare[2],
        ),
    ]


def _milliseconds(name: str, value: float, baseline: float) -> Figure:
    return Figure(requirement="SP-4", name=name, value=value, unit="ms", baseline=baseline)


def _percentile(milliseconds: Sequence[float], percent: int) -> float:
    return statistics.quantiles(milliseconds, n=100)[percent - 1]


def _run(target: str, path: str, members: Sequence[Member], world: World) -> tuple[list[float], int, float]:
    """Milliseconds of each event, how many were lost, and CPU of the server in microseconds an event."""
    with SocketServer(target, world.folder / "sockets.log") as server:
        listeners = _listen(server, path, members)
        warm_up = _make(members, WARM_UP_SECONDS)
        spent = server.cpu_seconds()
        made = _make(members, SECONDS)
        _await(listeners, len(warm_up) + len(made))
        spent = server.cpu_seconds() - spent
        told: Times = json.loads(_ask(listeners, "end"))
        listeners.kill()
        listeners.wait(10)
    taken = [(told[message][0] - at) / 1e6 for message, at in made.items() if message in told]
    return taken, len(made) - len(taken), spent / len(made) * 1e6


def _listen(server: SocketServer, path: str, members: Sequence[Member]) -> subprocess.Popen[str]:
    """A process with all the clients, when each of them is ready to be told."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.listeners"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    clients = [
        {"cookie": member.cookie, "chat": str(member.chat.pk), "address": f"10.0.{number // 250}.{number % 250}"}
        for number, member in enumerate(members)
    ]
    url = server.url(path).replace("http", "ws")
    answer = _ask(process, json.dumps({"url": url, "origin": f"https://{HOST}", "host": HOST, "clients": clients}))
    if answer.strip() != "ready":
        raise RuntimeError(f"The clients do not listen: {answer}")
    return process


def _await(process: Any, wanted: int) -> None:
    """Until that many events were told of, or for ten seconds no other one."""
    count, since = 0, time.monotonic()
    while count < wanted and time.monotonic() - since < PATIENCE_SECONDS:
        time.sleep(0.1)
        now = int(_ask(process, "count"))
        if now > count:
            count, since = now, time.monotonic()


def _ask(process: Any, line: str) -> str:
    process.stdin.write(f"{line}\n")
    process.stdin.flush()
    answer: str = process.stdout.readline()
    return answer


def _make(members: Sequence[Member], seconds: int) -> dict[str, int]:
    """Events at an even pace, in chats taken at random; when each was made."""
    from apps.agent import events

    made: dict[str, int] = {}
    started = time.monotonic()
    for number in range(seconds * EVENTS_A_SECOND):
        time.sleep(max(0.0, started + number / EVENTS_A_SECOND - time.monotonic()))
        message = uuid4()
        made[str(message)] = time.monotonic_ns()
        events.message_added(random.choice(members).chat.pk, message)
    return made
