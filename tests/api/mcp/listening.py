"""A client that reads an answer while it comes, over a socket that it can close at any time."""

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any

from tests.api.mcp.client import Client

ACCEPTS = "application/json, text/event-stream"


def parse(data: bytes) -> list[dict[str, Any]]:
    """The messages of a whole stream."""
    blocks = data.decode().split("\n\n")
    return [message for block in blocks if (message := _message(block)) is not None]


def _message(block: str) -> dict[str, Any] | None:
    """A comment is None."""
    lines = [line for line in block.split("\n") if line and not line.startswith(":")]
    if not lines:
        return None
    assert lines[0] == "event: message", lines
    assert len(lines) == 2, lines
    found: dict[str, Any] = json.loads(lines[1].removeprefix("data: "))
    return found


class Listening:
    """One call of a tool, sent. `mark`, the progress token, None asks for no progress."""

    def __init__(
        self,
        client: Client,
        port: int,
        tool: str,
        arguments: dict[str, Any],
        *,
        mark: Any = "mine",
        accept: str = ACCEPTS,
    ) -> None:
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        meta = {} if mark is None else {"_meta": {"progressToken": mark}}
        body, headers = client.message("tools/call", {**params, **meta})
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        self._connection.request(
            "POST",
            client.path,
            json.dumps(body),
            client.machine.headers({**headers, "Content-Type": "application/json", "Accept": accept}),
        )
        self.id = body["id"]
        self._response: http.client.HTTPResponse | None = None

    @property
    def response(self) -> http.client.HTTPResponse:
        """From its first byte on."""
        if self._response is None:
            self._response = self._connection.getresponse()
        return self._response

    @property
    def streams(self) -> bool:
        return self.response.headers["Content-Type"] == "text/event-stream"

    def blocks(self) -> Iterator[str]:
        """Each block as soon as it is there: an event or a comment."""
        lines: list[str] = []
        while line := self.response.readline():
            text = line.decode().rstrip("\n")
            if text:
                lines.append(text)
            else:
                yield "\n".join(lines)
                lines = []

    def messages(self) -> Iterator[dict[str, Any]]:
        return (message for block in self.blocks() if (message := _message(block)) is not None)

    def json(self) -> dict[str, Any]:
        """Of an answer that is no stream."""
        found: dict[str, Any] = json.loads(self.response.read())
        return found

    def leave(self) -> None:
        """As a client that is killed: the server may be in the middle of a word."""
        held = self._connection.sock
        if held is not None:
            held.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
        if self._response is not None:
            self._response.close()
        self._connection.close()
