"""The HTTP side of a provider: one thread a connection, one answer of the script a request, and a note of who hung up when."""

import json
import select
import socket
import threading
import time
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from tests.agent.wire.script import Cut, End, Finish, Gate, Raw, Refuse, Request, Silence, Step

SECONDS = 30.0
KEY = "sk-wire-0123456789"


class Invalid(Exception):
    """The provider refuses the request: status, and the body in its own form."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(str(body))
        self.status, self.body = status, body


class Wire:
    """A provider. `answers` are played in order, and the last one again and again. Use as a context manager."""

    PATH: ClassVar[str]

    def __init__(self, *answers: Sequence[Step], key: str = KEY) -> None:
        self.answers, self.key = list(answers), key
        self.requests: list[Request] = []
        # Requests that broke the provider's rules, with what it said.
        self.refusals: list[Any] = []
        self.silent, self.client_gone = threading.Event(), threading.Event()
        self.gone_at = 0.0
        # Connections that were opened, and those that ended.
        self.opened = self.ended = 0
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.wire = self
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self) -> "Wire":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base URL as an operator types it."""
        raise NotImplementedError

    def check(self, request: Request) -> None:
        """Raises Invalid for what the maker's server refuses."""
        raise NotImplementedError

    def stream(self, step: Step, state: dict[str, Any]) -> bytes:
        """The events of a step."""
        raise NotImplementedError

    def next(self, request: Request) -> Sequence[Step]:
        with self.lock:
            self.requests.append(request)
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]

    def note_gone(self) -> None:
        self.gone_at = time.monotonic()
        self.client_gone.set()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    wire: Wire

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is no error here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def setup(self) -> None:
        with self.server.wire.lock:
            self.server.wire.opened += 1
        super().setup()

    def finish(self) -> None:
        super().finish()
        with self.server.wire.lock:
            self.server.wire.ended += 1

    def do_GET(self) -> None:
        """Where a followed redirect would arrive."""
        self._received(None)
        self._whole(404, {"error": {"message": "Unknown request URL."}}, {})

    def do_POST(self) -> None:
        wire = self.server.wire
        body = self.rfile.read(int(self.headers.get("content-length", "0")))
        request = self._received(json.loads(body))
        try:
            wire.check(request)
        except Invalid as invalid:
            with wire.lock:
                wire.refusals.append(invalid.body)
                wire.requests.append(request)
            self._whole(invalid.status, invalid.body, {})
            return
        self._play(wire.next(request))

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _received(self, body: Any) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        return Request(path=self.path, headers=headers, body=body)

    def _play(self, steps: Sequence[Step]) -> None:
        wire, state = self.server.wire, dict[str, Any]()
        is_open = False
        for step in steps:
            if isinstance(step, Refuse) and not is_open:
                self._whole(step.status, step.body, dict(step.headers))
                return
            if isinstance(step, Gate):
                assert step.opened.wait(SECONDS)
                continue
            if not is_open and not isinstance(step, Silence | Cut):
                self._head()
                is_open = True
            match step:
                case Silence():
                    self._until_client_is_gone()
                    return
                case Cut():
                    self._break_off()
                    return
                case End():
                    self._chunk(b"")
                    return
                case Raw():
                    self._chunk(step.data)
                case Finish():
                    self._chunk(wire.stream(step, state))
                    self._chunk(b"")
                case _:
                    self._chunk(wire.stream(step, state))

    def _head(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _whole(self, status: int, body: Any, headers: dict[str, str]) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _until_client_is_gone(self) -> None:
        self.server.wire.silent.set()
        ready, _, _ = select.select([self.connection], [], [], SECONDS)
        gone = True
        if ready:
            try:
                gone = self.connection.recv(1) == b""
            except OSError:
                gone = True
        if ready and gone:
            self.server.wire.note_gone()
        self.close_connection = True

    def _break_off(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        self.connection.close()
        self.close_connection = True
