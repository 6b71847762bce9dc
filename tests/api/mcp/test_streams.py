"""Streams on the servers that the program runs behind: nothing is buffered, nobody is waited for, no call ends with its client (MC-1)."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from apps.activity.models import Entry
from apps.api.models import IdempotencyRecord, KeyFamily
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.held import wait_until
from tests.api.mcp.client import ERAS, MODERN, Client
from tests.api.mcp.listening import Listening
from tests.api.once import Gate
from tests.services import Program

pytestmark = [pytest.mark.sqlite, pytest.mark.alone]

HALF: dict[str, Any] = {"done": 1, "total": 2}
Start = Callable[..., Program]


@pytest.fixture(params=["uvicorn", "granian"])
def program(request: pytest.FixtureRequest, transactional_db: None, start_program: Start) -> Program:
    """The embedded server, which is all there is on SQLite, or the workers of production."""
    if connection.vendor == "sqlite" and request.param != "uvicorn":
        pytest.skip("SQLite has one process")
    return start_program(request.param, DJANGO_SETTINGS_MODULE="tests.api.mcp.settings")


@pytest.fixture
def walker(transactional_db: None) -> Machine:
    return factories.make_machine(scopes=[probe.READ, probe.WRITE])


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


def listen(
    program: Program, machine: Machine, tool: str, *, version: str = MODERN, mark: Any = "mine", **given: Any
) -> Listening:
    return Listening(Client(machine=machine, version=version), program.port, tool, given, mark=mark)


def plain(program: Program, machine: Machine, tool: str, **given: Any) -> dict[str, Any]:
    """The result of a call that asks for no progress."""
    found: dict[str, Any] = listen(program, machine, tool, mark=None, **given).json()["result"]
    return found


def streams_again(program: Program, machine: Machine) -> bool:
    return listen(program, machine, "walk_look", first=[HALF]).streams


def test_the_first_step_is_there_long_before_the_end(program: Program, walker: Machine, gate: Gate) -> None:
    for version in ERAS:
        before = KeyFamily.objects.count()
        with gate.closed():
            heard = listen(
                program, walker, "walk_go", version=version, first=[HALF], then=[{"done": 2}], gate=str(gate.path)
            )
            messages = heard.messages()
            first = next(messages)
            assert heard.streams
            assert KeyFamily.objects.count() == before  # nothing of it is committed
        *_, last = messages
        assert first["params"] == {"progressToken": "mine", "progress": 1, "total": 2}
        assert (last["id"], last["result"]["isError"]) == (heard.id, False)
        assert KeyFamily.objects.count() == before + 1


def test_a_silent_tool_keeps_the_stream_alive(program: Program, walker: Machine, gate: Gate) -> None:
    with gate.closed():
        heard = listen(program, walker, "walk_look", gate=str(gate.path))
        blocks = heard.blocks()
        assert [next(blocks) for _ in range(3)] == [": the call goes on"] * 3
        assert heard.streams
        assert "RateLimit" in heard.response.headers
    *_, last = blocks
    assert '"seen":true' in last


def test_a_client_that_leaves_ends_nothing(program: Program, walker: Machine, gate: Gate) -> None:
    before = KeyFamily.objects.count()
    given: dict[str, Any] = {"first": [HALF], "many": 1_000, "gate": str(gate.path), "idempotency_key": "mine"}
    with gate.closed():
        heard = listen(program, walker, "walk_go", **given)
        assert next(heard.messages())["params"]["progress"] == 1
        heard.leave()
        if connection.vendor == "postgresql":  # SQLite has one writer: a repeat waits for it
            meanwhile = plain(program, walker, "walk_go", **given)
            assert json.loads(meanwhile["content"][0]["text"])["code"] == "idempotency_in_progress"
    wait_until(lambda: IdempotencyRecord.objects.get().state == "done", seconds=10)
    assert KeyFamily.objects.count() == before + 1
    outcomes = Entry.objects.filter(action="api.request").values_list("metadata__outcome", flat=True)
    assert list(outcomes).count("ok") == 1
    assert plain(program, walker, "walk_go", **given)["_meta"]["Idempotent-Replayed"] is True
    assert KeyFamily.objects.count() == before + 1


def test_a_client_that_leaves_before_the_first_step_ends_nothing(program: Program, walker: Machine, gate: Gate) -> None:
    given: dict[str, Any] = {"first": [], "then": [HALF], "gate": str(gate.path), "idempotency_key": "mine"}
    with gate.closed():
        heard = listen(program, walker, "walk_go", **given)
        gate.wait_for("here")
        heard.leave()
    wait_until(lambda: IdempotencyRecord.objects.get().state == "done", seconds=10)
    assert plain(program, walker, "walk_go", **given)["_meta"]["Idempotent-Replayed"] is True


def test_the_ninth_stream_is_plain_json(walker: Machine, start_program: Start, tmp_path: Path) -> None:
    program = start_program("uvicorn", DJANGO_SETTINGS_MODULE="tests.api.mcp.settings")
    gate = Gate(tmp_path)
    with gate.closed():
        eight = [listen(program, walker, "walk_look", first=[HALF], gate=str(gate.path)) for _ in range(8)]
        streams = [heard.messages() for heard in eight]
        assert all(next(stream)["params"]["progress"] == 1 for stream in streams)
        ninth = listen(program, walker, "walk_look", first=[HALF])
        assert ninth.json()["result"]["structuredContent"] == {"seen": True}
        assert not ninth.streams
    assert all(list(stream)[-1]["result"]["isError"] is False for stream in streams)
    assert streams_again(program, walker)


@pytest.mark.parametrize("end", ["leave", "break", "refuse", ""])
def test_the_places_of_streams_come_free_however_they_end(
    program: Program, walker: Machine, gate: Gate, end: str
) -> None:
    """Eight each time: one place that is not given back would leave none after them."""
    with gate.closed(), ExitStack() as left:
        for _ in range(4):
            heard = listen(program, walker, "walk_look", first=[HALF], gate=str(gate.path), end=end or "refuse")
            assert next(heard.messages())["params"]["progress"] == 1
            left.callback(heard.leave)
    for _ in range(8):
        *_, last = listen(program, walker, "walk_look", first=[HALF], **({"end": end} if end else {})).messages()
        assert last["result"]["isError"] is bool(end)
    assert streams_again(program, walker)


def test_a_stream_leaves_no_connection_of_the_database(postgres_url: str, program: Program, walker: Machine) -> None:
    def connections() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            return int(cursor.fetchone()[0])

    for _ in range(8):
        plain(program, walker, "walk_look", first=[HALF])
    before = connections()
    for _ in range(20):
        assert list(listen(program, walker, "walk_look", first=[HALF]).messages())
    wait_until(lambda: connections() <= before + 1, seconds=10)


def test_the_thread_logs_under_the_id_of_its_request(program: Program, walker: Machine) -> None:
    heard = listen(program, walker, "walk_look", first=[HALF])
    assert list(heard.messages())
    line = next(line for line in program.log().splitlines() if "walking" in line)
    assert heard.response.headers["X-Request-ID"] in line
