"""All that a Redis is told, by its own MONITOR, over a restart too."""

import re
import socket
import threading
import time
from codecs import escape_decode
from typing import Any
from uuid import UUID

import msgpack

from tests.agent import tab

_ARGUMENT = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_GROUP = re.compile(rf"tollhouse__group__(agent\.conv\.{_UUID}|session\.[0-9a-f]{{32}}|approvals)")
_CHANNEL = re.compile(r"tollhousespecific\.[0-9a-f]{32}")


class Overheard:
    """`with Overheard(port) as heard: …`; `heard.lines` are the commands as Redis prints them."""

    def __init__(self, port: int) -> None:
        self.lines: list[bytes] = []
        self._port, self._is_over = port, threading.Event()
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._listen_for_ever, daemon=True)

    def __enter__(self) -> "Overheard":
        self._thread.start()
        assert self._listens.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join(10)

    def published(self) -> list[tuple[str, Any]]:
        """Channel and message of each PUBLISH."""
        found = [self._arguments(line) for line in self.lines]
        return [(args[1].decode(), msgpack.unpackb(args[2])) for args in found if args[0].upper() == b"PUBLISH"]

    def subscribed(self) -> set[str]:
        """The channels that somebody listened to."""
        found = [self._arguments(line) for line in self.lines]
        return {name.decode() for args in found if args[0].upper() == b"SUBSCRIBE" for name in args[1:]}

    def _listen_for_ever(self) -> None:
        while not self._is_over.is_set():
            try:
                self._listen()
            except OSError:
                time.sleep(0.01)

    def _listen(self) -> None:
        with socket.create_connection(("127.0.0.1", self._port), timeout=0.2) as wire:
            wire.sendall(b"MONITOR\r\n")
            rest = b""
            while not self._is_over.is_set():
                try:
                    piece = wire.recv(65_536)
                except TimeoutError:
                    continue
                if not piece:
                    return
                *lines, rest = (rest + piece).split(b"\r\n")
                self._listens.set()
                self.lines += [line for line in lines if b'"' in line]

    @staticmethod
    def _arguments(line: bytes) -> list[bytes]:
        return [escape_decode(argument)[0] for argument in _ARGUMENT.findall(line)]


def is_known(channel: str, message: dict[str, Any]) -> bool:
    """A channel of ours, and a message of known keys and uuids."""
    if not _GROUP.fullmatch(channel):
        return False
    match message:
        case {"type": "chat.event", "frame": frame}:
            return (
                message.keys() == {"type", "frame"} and tab.is_known(frame) and channel.endswith(frame["conversation"])
            )
        case {"type": "approval.changed", "approval": approval}:
            return len(message) == 2 and str(UUID(approval)) == approval
        case _:
            return message == {"type": "session.changed"}


def is_ours(channel: str) -> bool:
    """A name of a group or of one socket's own channel."""
    return bool(_GROUP.fullmatch(channel) or _CHANNEL.fullmatch(channel))
