"""The servers: the embedded one from an empty folder to a clean stop, and what both do with hostile requests."""

import asyncio
import contextlib
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from config import serve
from tests.services import Program


@pytest.fixture
def fresh(tmp_path: Path) -> dict[str, str]:
    """The environment of `make run` with a database that does not exist yet."""
    root = Path(__file__).resolve().parent.parent.parent
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(root),
        "PYTHONUNBUFFERED": "1",
        "DEBUG": "1",
        "DATABASE_URL": f"sqlite:///{tmp_path / 'fresh.sqlite3'}",
    }


def start(environment: dict[str, str]) -> Program:
    program = Program("uvicorn", environment)
    program.start()
    return program


def end(program: Program, number: signal.Signals) -> int:
    """Tell it to stop; its exit code."""
    assert program.process is not None
    program.process.send_signal(number)
    return program.process.wait(10)


def test_a_fresh_start_makes_the_demo_and_stops_clean_and_a_second_one_keeps_it(
    fresh: dict[str, str], tmp_path: Path
) -> None:
    def people() -> list[Any]:
        with sqlite3.connect(tmp_path / "fresh.sqlite3") as database:
            return database.execute("SELECT email, password FROM accounts_user ORDER BY email").fetchall()

    first = start(fresh)
    codes = [end(first, signal.SIGINT)]
    before = people()
    second = start(fresh)
    codes.append(end(second, signal.SIGTERM))

    assert codes == [0, 0]
    assert "Traceback" not in first.log() + second.log()
    assert len(before) == 3
    assert people() == before
    assert "operator@example.org" in first.log()
    assert "The database was empty" not in second.log()
    first.remove()
    second.remove()


def test_a_busy_port_is_one_line(fresh: dict[str, str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        command = [sys.executable, "-m", "config.serve", "--port", str(taken.getsockname()[1])]
        answer = subprocess.run(command, env=fresh, capture_output=True, text=True, check=False, timeout=30)

    assert answer.returncode == 1
    assert answer.stdout.count("\n") == 1
    assert "Can't listen on 127.0.0.1 port" in answer.stdout


def talk(program: Program, *parts: bytes) -> bytes:
    """Send the parts, then read until the server closes; a reset is an error."""
    with socket.create_connection(("127.0.0.1", program.port), timeout=10) as connection:
        with contextlib.suppress(BrokenPipeError):  # granian hangs up on what it won't read, and answers all the same
            for part in parts:
                connection.sendall(part)
        answer = b""
        while received := connection.recv(65536):
            answer += received
    return answer


@pytest.mark.parametrize("server", ["uvicorn", "granian"])
def test_a_body_that_nobody_reads_does_not_cost_the_client_its_answer(
    start_program: Callable[..., Program], server: str
) -> None:
    program = start_program(server)
    head = b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    size = 3 * 1024 * 1024
    whole = talk(program, head + f"Content-Length: {size}\r\n\r\n".encode(), b"x" * size)
    chunked = talk(
        program, head + b"Transfer-Encoding: chunked\r\n\r\n", f"{size:x}\r\n".encode(), b"x" * size, b"\r\n0\r\n\r\n"
    )

    assert [answer.split(b" ", 2)[1] for answer in (whole, chunked)] == [b"403", b"403"]


def status(path: str) -> int:
    """Of a GET of the ASGI application; the answer is taken whole, or the thread behind it would wait for ever."""
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http", "http_version": "1.1", "method": "GET", "path": path, "query_string": b"",
        "headers": [(b"host", b"localhost")],
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    # Imported late: the module checks the program, and a check may look at the database.
    from config import asgi

    asyncio.run(asgi.application(scope, receive, send))
    return int(sent[0]["status"])


@pytest.mark.parametrize(("embedded", "expected"), [(False, [200, 404]), (True, [200, 200])])
@pytest.mark.django_db(transaction=True)
def test_in_production_the_asgi_process_serves_health_alone(settings: Any, embedded: bool, expected: list[int]) -> None:
    settings.EMBEDDED = embedded

    assert [status("/healthz"), status("/sign-in/")] == expected


def test_an_answer_on_a_kept_connection_does_not_wait_for_the_clients_acknowledgement() -> None:
    async def delays() -> list[int]:
        accepted: asyncio.Queue[asyncio.Transport] = asyncio.Queue()

        class Serving(asyncio.Protocol):
            def connection_made(self, transport: asyncio.BaseTransport) -> None:
                assert isinstance(transport, asyncio.Transport)
                accepted.put_nowait(transport)

        found = []
        for host in ("127.0.0.1", "::1"):
            listener = serve._listen(host, 0)
            server = await asyncio.get_running_loop().create_server(Serving, sock=listener)
            async with server:
                _, writer = await asyncio.open_connection(*listener.getsockname()[:2])
                transport = await accepted.get()
                found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
                transport.abort()
                writer.close()
        return found

    assert asyncio.run(delays()) == [1, 1]
