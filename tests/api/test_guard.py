"""Reads, previews and danger rules can't write, and leave a thread that can (RF-16)."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection, connections, transaction

from apps.activity.models import Entry
from apps.api import fingerprint, guard, preview
from apps.api.models import Setting
from tests.api.shop import Shop, put, stored

pytestmark = pytest.mark.sqlite


@pytest.fixture
def elsewhere(transactional_db: None, tmp_path: Path) -> Iterator[Any]:
    """A second alias in DATABASES, with a table `notes` of its own."""
    settings = {**connections.settings["default"], **connection.settings_dict}
    if connection.vendor == "sqlite":
        settings["NAME"] = str(tmp_path / "elsewhere.sqlite3")
    connections.settings["elsewhere"] = settings
    opened: Any = connections["elsewhere"]
    # Django's test case forbids aliases that were not there when it began.
    opened.ensure_connection = lambda: opened.connection is None and opened.connect()
    try:
        _run("CREATE TABLE notes (text varchar(20))", using="elsewhere")
        yield opened
        _run("DROP TABLE notes", using="elsewhere")
    finally:
        opened.close()
        del connections["elsewhere"]
        del connections.settings["elsewhere"]


def _rows(database: Any) -> list[Any]:
    with database.cursor() as cursor:
        cursor.execute("SELECT text FROM notes")
        return list(cursor.fetchall())


# --- The ways a handler might write ---------------------------------------------------------------------------------------------------

INSERT = "INSERT INTO api_setting (name, value, updated_at) VALUES ('smuggled', '1', '2026-01-01')"


def _run(*statements: str, using: str = "default") -> None:
    with connections[using].cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def _bulk() -> None:
    Setting.objects.bulk_create([Setting(name="smuggled", value=1)])


def _updated() -> None:
    Setting.objects.filter(name="mine").update(value=2)


def _deleted() -> None:
    Setting.objects.filter(name="mine").delete()


def _in_a_block() -> None:
    with transaction.atomic():
        put("smuggled")


def _another_alias() -> None:
    _run("INSERT INTO notes VALUES ('smuggled')", using="elsewhere")


def _another_alias_in_a_block() -> None:
    with transaction.atomic(using="elsewhere"):
        _another_alias()


def _made_a_table() -> None:
    _run("CREATE TABLE smuggled (name varchar(20))")


REFUSED: dict[str, Callable[[], Any]] = {
    "orm": lambda: put("smuggled"),
    "bulk": _bulk,
    "update": _updated,
    "delete": _deleted,
    "raw": lambda: _run(INSERT),
    "block": _in_a_block,
    "alias": _another_alias,
    "alias in a block": _another_alias_in_a_block,
    "table": _made_a_table,
}


def _hooked() -> None:
    transaction.on_commit(lambda: put("smuggled"))


def _hooked_elsewhere() -> None:
    transaction.on_commit(_another_alias, using="elsewhere")


def _hooked_in_a_block() -> None:
    with transaction.atomic():
        _hooked()


def _swallowed() -> None:
    with suppress(Exception):
        put("smuggled")


WITHOUT_EFFECT: dict[str, Callable[[], Any]] = {
    "hook": _hooked,
    "hook elsewhere": _hooked_elsewhere,
    "hook in a block": _hooked_in_a_block,
    "swallowed": _swallowed,
}


def _read(shop: Shop, act: Callable[[], Any]) -> Callable[[], Any]:
    def handler(given: Any, ctx: Any) -> Any:
        act()
        return {"done": True}

    machine = shop.read(handler)
    return lambda: machine.call("shop.run")


def _preview(shop: Shop, act: Callable[[], Any]) -> Callable[[], Any]:
    def shown(given: Any, ctx: Any) -> Any:
        act()
        return preview("Nothing."), fingerprint(["a"], {})

    machine = shop.write(lambda given, ctx: {"done": True}, shown=shown)
    return lambda: machine.call("shop.run", {"dry_run": True})


def _rule(shop: Shop, act: Callable[[], Any]) -> Callable[[], Any]:
    def rule(given: Any, ctx: Any) -> bool:
        act()
        return False

    machine = shop.write(lambda given, ctx: {"done": put("honest")}, danger=rule)
    return lambda: machine.call("shop.run")


def _preview_of_a_prompt(shop: Shop, act: Callable[[], Any]) -> Callable[[], Any]:
    def shown(given: Any, ctx: Any) -> Any:
        act()
        return preview("Nothing."), fingerprint(["a"], {})

    machine = shop.write(lambda given, ctx: {"done": True}, shown=shown, danger="always")
    return lambda: machine.call("shop.run")


PLACES = {"read": _read, "preview": _preview, "rule": _rule, "preview of a prompt": _preview_of_a_prompt}

in_each_place = pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)


def _assert_well() -> None:
    """Nothing was smuggled, and this thread reads, writes and commits as ever, on every alias."""
    assert not connection.in_atomic_block
    assert "smuggled" not in stored()
    for database in connections.all():
        with database.cursor() as cursor:
            cursor.execute("CREATE TABLE proof (x integer)")
            cursor.execute("DROP TABLE proof")
    assert put("afterwards") in stored()
    with transaction.atomic():
        put("and in a block")
    assert set(stored()) >= {"afterwards", "and in a block"}


@in_each_place
def test_the_database_refuses_every_write(
    shop: Shop, elsewhere: Any, subtests: pytest.Subtests, caplog: pytest.LogCaptureFixture, place: Any
) -> None:
    put("mine")
    for name, act in REFUSED.items():
        with subtests.test(name):
            caplog.clear()
            answer = place(shop, act)()
            assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
            lines = [record.msg for record in caplog.records if isinstance(record.msg, dict)]
            assert "call_failed" in [line["event"] for line in lines]
            assert _rows(elsewhere) == []
            assert Setting.objects.get(name="mine").value == 1
            _assert_well()
            assert "honest" not in stored()


@in_each_place
def test_what_the_database_cannot_refuse_has_no_effect(
    shop: Shop, elsewhere: Any, subtests: pytest.Subtests, place: Any
) -> None:
    for name, act in WITHOUT_EFFECT.items():
        with subtests.test(name):
            answer = place(shop, act)()
            assert answer.status_code in (200, 500)
            assert _rows(elsewhere) == []
            _assert_well()


# --- Handlers that fight the guard ----------------------------------------------------------------------------------------------------


def _leave_open() -> None:
    transaction.atomic().__enter__()


def _leave_open_everywhere() -> None:
    _leave_open()
    _leave_open()
    transaction.atomic(using="elsewhere").__enter__()


def _close_all() -> None:
    connections.close_all()


def _fail() -> None:
    _run("SELECT nothing FROM nowhere")


def _fail_and_go_on() -> None:
    with suppress(Exception):
        _fail()


def _fail_in_a_block() -> None:
    with suppress(Exception), transaction.atomic():
        _fail()


def _close_raw() -> None:
    connection.connection.close()


def _exit() -> None:
    raise SystemExit(1)


MEDDLERS: dict[str, Callable[[], Any]] = {
    "commits": lambda: _run("COMMIT"),
    "rolls back": lambda: _run("ROLLBACK"),
    "commits and begins": lambda: _run("COMMIT", "BEGIN"),
    "rolls back and writes": lambda: _run("ROLLBACK", INSERT),
    "leaves a block open": _leave_open,
    "leaves blocks open everywhere": _leave_open_everywhere,
    "closes the connection": lambda: connection.close(),  # noqa: PLW0108 - `connection` stands for each thread's own
    "closes every connection": _close_all,
    "closes the raw connection": _close_raw,
    "fails": _fail,
    "fails and goes on": _fail_and_go_on,
    "fails in a block": _fail_in_a_block,
    "asks for no rollback": lambda: transaction.set_rollback(False),
    "raises a SystemExit": _exit,
}

OF_SQLITE: dict[str, Callable[[], Any]] = {
    "lifts query_only": lambda: _run("PRAGMA query_only = OFF"),
    "lifts query_only and writes": lambda: _run("PRAGMA query_only = OFF", INSERT),
    "lifts query_only, writes and sets it again": lambda: _run("PRAGMA query_only = 0", INSERT, "PRAGMA query_only=1"),
}

OF_POSTGRESQL: dict[str, Callable[[], Any]] = {
    "releases the savepoint": lambda: _run("RELEASE SAVEPOINT tollhouse_guard"),
    "rolls back to the savepoint": lambda: _run("ROLLBACK TO SAVEPOINT tollhouse_guard"),
    "asks for read write": lambda: _run("SET TRANSACTION READ WRITE"),
    "asks for read write and writes": lambda: _run("SET LOCAL transaction_read_only = off", INSERT),
    "sets the session's default": lambda: _run("SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE", INSERT),
    "begins": lambda: _run("BEGIN"),
}


@in_each_place
def test_a_handler_that_fights_the_guard_writes_nothing_and_leaves_a_working_thread(
    shop: Shop, elsewhere: Any, subtests: pytest.Subtests, place: Any
) -> None:
    own = OF_SQLITE if connection.vendor == "sqlite" else OF_POSTGRESQL
    for name, act in {**MEDDLERS, **own}.items():
        with subtests.test(name):
            answer = place(shop, act)()
            assert answer.status_code in (200, 500, 503)
            if answer.status_code == 200 and "done" in answer.json() and place is _rule:
                assert "honest" in stored()
            _assert_well()
            Setting.objects.all().delete()


@in_each_place
def test_the_next_call_of_the_same_thread_writes(shop: Shop, elsewhere: Any, place: Any) -> None:
    call = place(shop, lambda: _run("ROLLBACK"))
    call()
    machine = shop.write(lambda given, ctx: {"done": put("done")})
    assert machine.call("shop.run").json() == {"done": "done"}
    assert Entry.objects.filter(action="api.request", metadata__outcome="ok", target="shop.run").exists()


# --- The guard itself -----------------------------------------------------------------------------------------------------------------


def test_an_exception_passes_through(transactional_db: None) -> None:
    with pytest.raises(LookupError), guard.read_only():
        raise LookupError
    _assert_well()


def test_it_works_inside_a_block_and_the_block_goes_on(transactional_db: None) -> None:
    with transaction.atomic():
        put("before")
        with pytest.raises(Exception, match=r"read-only|readonly"), guard.read_only():
            put("smuggled")
        put("after")
    assert stored() == ["after", "before"]


def test_it_works_inside_itself(transactional_db: None) -> None:
    with guard.read_only(), guard.read_only():
        assert stored() == []
    _assert_well()


def test_a_guard_that_cannot_begin_leaves_nothing_behind(transactional_db: None) -> None:
    """Inside a block that is to be rolled back, the guard has no savepoint."""
    with suppress(Exception), transaction.atomic():
        transaction.set_rollback(True)
        with suppress(Exception), guard.read_only():
            _fail()
    _assert_well()


@pytest.fixture
def writer(transactional_db: None) -> Iterator[sqlite3.Connection]:
    """Another process's open write transaction, on SQLite."""
    if connection.vendor != "sqlite":
        pytest.skip("on PostgreSQL readers never wait for writers")
    other = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, timeout=0)
    yield other
    other.close()


def test_a_read_does_not_wait_for_a_writer(shop: Shop, writer: sqlite3.Connection) -> None:
    machine = shop.read(lambda given, ctx: {"names": stored()})
    put("a")
    _run("PRAGMA busy_timeout = 0")
    writer.execute("BEGIN IMMEDIATE")
    writer.execute(INSERT)
    first, second = machine.call("shop.run"), machine.call("shop.run")
    writer.execute("ROLLBACK")
    assert first.json() == second.json() == {"names": ["a"]}


def test_a_preview_does_not_wait_for_a_writer_but_for_its_entry(shop: Shop, writer: sqlite3.Connection) -> None:
    """The preview itself reads; only its entry needs the writer's turn, and without it there is no answer."""
    seen: list[list[str]] = []

    def shown(given: Any, ctx: Any) -> Any:
        seen.append(stored())
        return {"summary": "x"}, "fixed"

    machine = shop.write(lambda given, ctx: {}, shown=shown)
    put("a")
    _run("PRAGMA busy_timeout = 0")
    writer.execute("BEGIN IMMEDIATE")
    answer = machine.call("shop.run", {"dry_run": True})
    writer.execute("ROLLBACK")
    assert seen == [["a"]]
    assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")


def test_only_the_guard_begins_deferred(transactional_db: None) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a word of SQLite")
    begun: list[str] = []
    connection.ensure_connection()
    connection.connection.set_trace_callback(lambda sql: begun.append(sql) if sql.startswith("BEGIN") else None)
    with guard.read_only():
        pass
    with suppress(LookupError), guard.read_only():
        raise LookupError
    with transaction.atomic():
        pass
    connection.connection.set_trace_callback(None)
    assert begun == ["BEGIN DEFERRED", "BEGIN DEFERRED", "BEGIN IMMEDIATE"]
