"""Sockets of browsers for tests: the real application without a server in front of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from asgiref.testing import ApplicationCommunicator
from django.db import connections
from django.test import Client

from config import sockets

HERE = "http://testserver"
ODD = {"type": "error", "code": "validation_failed"}


class Socket:
    """One socket of a browser."""

    def __init__(self, client: Client | None = None, *, path: str = "/ws/approvals/", **headers: str) -> None:
        cookies = {} if client is None else {name: morsel.value for name, morsel in client.cookies.items()}
        cookie = "; ".join(f"{name}={value}" for name, value in cookies.items())
        given = {"origin": HERE, "host": "testserver", "cookie": cookie, **headers}
        pairs = [(name.encode(), value.encode()) for name, value in given.items() if value]
        scope = {"type": "websocket", "path": path, "headers": pairs, "query_string": b"", "subprotocols": []}
        wire: Any = ApplicationCommunicator  # the library has no types
        self._wire = wire(sockets.application, scope)

    async def open(self) -> bool:
        await self._wire.send_input({"type": "websocket.connect"})
        answer = await self._wire.receive_output(10)
        return bool(answer["type"] == "websocket.accept")

    async def say(self, frame: Any) -> None:
        text = frame if isinstance(frame, str) else json.dumps(frame)
        await self._wire.send_input({"type": "websocket.receive", "text": text})

    async def told(self) -> Any:
        """The next frame, or the code that the socket is closed with."""
        message = await self._wire.receive_output(10)
        if message["type"] == "websocket.close":
            return message["code"]
        return json.loads(message["text"])

    async def leave(self) -> None:
        await self._wire.send_input({"type": "websocket.disconnect", "code": 1001})
        await self._wire.wait(10)


async def ready(client: Client, *, path: str = "/ws/approvals/") -> Socket:
    """An open socket that is ready to tell: frames are read after the session was looked at."""
    socket = Socket(client, path=path)
    assert await socket.open()
    await socket.say("odd")
    assert await socket.told() == ODD
    return socket


def listening(client: Client, then: Callable[[Socket], Awaitable[Any]], *, path: str = "/ws/approvals/") -> Any:
    """What the function says of an open socket that is ready to tell."""

    async def run() -> Any:
        socket = await ready(client, path=path)
        try:
            return await then(socket)
        finally:
            await socket.leave()

    return asyncio.run(run())


async def outside(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a request does meanwhile, in a thread of its own."""

    def work() -> Any:
        try:
            return function(*arguments)
        finally:
            connections.close_all()

    return await asyncio.to_thread(work)


def browser_of(person: Any) -> Client:
    client = Client()
    client.force_login(person)
    return client


def told_first(client: Client | None, **headers: str) -> Any:
    """What a socket is told that just opens; None when it was refused at the handshake."""

    async def run() -> Any:
        socket = Socket(client, **headers)
        told = await socket.told() if await socket.open() else None
        if told is not None:
            await socket.leave()
        return told

    return asyncio.run(run())
