"""A client that sends bytes as they are and reads answers strictly, for the tests on real servers."""

import contextlib
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPMessage, HTTPResponse
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer, read whole."""

    status: int
    headers: HTTPMessage
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class Wire:
    """One connection to a server."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = connection.makefile("rb")

    def send(self, *parts: bytes) -> None:
        """As it is. A server that hangs up while it is sent to has answered already."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                self._connection.sendall(part)

    def finish(self) -> None:
        """Nothing more will be sent; answers can still be read."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def read(self, method: str = "POST") -> Answer:
        """The next answer; an interim one (100 Continue) is passed by."""
        response = HTTPResponse(self, method=method)  # type: ignore[arg-type]  # it needs no more than `makefile`
        response.begin()
        return Answer(status=response.status, headers=response.headers, body=response.read())

    def makefile(self, mode: str) -> Any:
        """The one reader of this connection: HTTPResponse would close one of its own, with bytes of the next answer in it."""
        return _Kept(self._reader)

    def is_closed(self) -> bool:
        """Whether the server hangs up within a few seconds."""
        try:
            return self._reader.read(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True


class _Kept:
    """A reader that stays open when its user closes it."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def close(self) -> None:
        return None


@contextmanager
def connect(port: int) -> Iterator[Wire]:
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        yield Wire(connection)


def request(method: str, path: str, *headers: str, body: bytes | None = None, version: str = "1.1") -> bytes:
    """The bytes of a request; a body brings its length."""
    lines = [f"{method} {path} HTTP/{version}", "Host: localhost", *headers]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + (body or b"")


def chunked(*pieces: bytes, last: bytes = b"0\r\n\r\n") -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces) + last
