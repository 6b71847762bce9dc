"""SP-1, what a read asks of its stores: queries besides the handler's own, and round trips."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest import mock

import redis
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from bench.figures import Figure
from bench.reads import PATH, TOOL
from bench.world import HOST, World

# Not counted by the specification; PREPARE comes once a connection.
_AROUND = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "SET", "PREPARE")


def measure(world: World) -> list[Figure]:
    """Of the second call on a connection: the first one notes the use of the key."""
    read = _caller(world)
    read()
    all_of_them, own = len(counted(sent(read))), len(counted(sent(_handler(world))))
    with _trips(world) as trips:
        read()
    return [
        Figure(
            requirement="SP-1",
            name="queries of a read besides the handler's own",
            value=all_of_them - own,
            unit="",
            wanted="<= 3 (better 1)",
            met=all_of_them - own <= 3,
        ),
        Figure(requirement="SP-1", name="round trips to PostgreSQL, all", value=trips["postgresql"], unit=""),
        Figure(requirement="SP-1", name="round trips to Redis", value=trips["redis"], unit=""),
    ]


def _caller(world: World) -> Callable[[], None]:
    client = Client(headers=world.headers(world.key), SERVER_NAME=HOST)

    def read() -> None:
        answer = client.post(PATH + TOOL, json.dumps({"sku": world.sku}), content_type="application/json", secure=True)
        assert answer.status_code == 200, answer.content

    return read


def _handler(world: World) -> Callable[[], None]:
    """The tool's handler alone; it asks nothing of its context."""
    from apps.api import registry

    tool = registry.current().find("admin", TOOL)
    assert tool is not None
    return lambda: tool.handler(None, sku=world.sku)


def sent(act: Callable[[], object]) -> list[str]:
    """Every statement, transactions included."""
    with CaptureQueriesContext(connection) as captured:
        act()
    return [query["sql"] for query in captured]


def counted(statements: Sequence[str]) -> list[str]:
    """Those that the specification counts."""
    return [statement for statement in statements if not statement.startswith(_AROUND)]


@contextmanager
def _trips(world: World) -> Iterator[dict[str, int]]:
    """Counted at the end: libpq's own trace tells each time that the server is ready again, the client of Redis what it sends."""
    found: dict[str, int] = {}
    trace = world.folder / "trace"
    # libpq keeps the descriptor as its own.
    descriptor = os.open(trace, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    raw: Any = connection.connection
    send = redis.Connection.send_packed_command
    with mock.patch.object(redis.Connection, "send_packed_command", autospec=True, side_effect=send) as calls:
        raw.pgconn.trace(descriptor)
        yield found
        raw.pgconn.untrace()
    found["postgresql"] = trace.read_text().count("ReadyForQuery")
    found["redis"] = calls.call_count
