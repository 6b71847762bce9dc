"""The effect transaction (RF-15): handler, answer and entries commit together or not at all."""

import asyncio
import itertools
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, OperationalError, connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from apps.activity.models import Entry
from apps.api import Module, ToolError, faults
from apps.api.models import ApiKey, Setting
from tests.api.factories import Machine
from tests.api.shop import PERMISSION, SCOPE, Shop, put, stored

pytestmark = pytest.mark.sqlite

SECRET = "a detail of the inside"


@pytest.fixture
def other(database_url: str) -> Iterator[Any]:
    """A second connection to the database, outside Django, which commits each statement."""
    if connection.vendor == "sqlite":
        opened: Any = sqlite3.connect(connection.settings_dict["NAME"], isolation_level=None, timeout=0.1)
    else:
        opened = psycopg.connect(database_url, autocommit=True)
    yield opened
    opened.close()


@pytest.fixture
def postgres(postgres_url: str, other: Any) -> Any:
    """`other`, where it is PostgreSQL."""
    return other


def outcomes() -> list[tuple[str, str | None]]:
    """Outcome and code of each `api.request` entry, in order."""
    entries = Entry.objects.filter(action="api.request").order_by("created_at")
    return [(entry.metadata["outcome"], entry.metadata["code"]) for entry in entries]


def events(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """The structured lines of the log."""
    return [record.msg for record in caplog.records if isinstance(record.msg, dict)]


def is_well(machine: Machine) -> bool:
    """Whether this thread's connection serves and keeps an honest write."""
    answer = machine.call("shop.put", {"name": "afterwards"})
    return answer.status_code == 200 and Setting.objects.filter(name="afterwards").exists()


# --- What a handler refuses -----------------------------------------------------------------------------------------------------------


def test_a_declared_refusal_takes_back_what_the_handler_wrote(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        ctx.log("shop.row_stored", "setting", "a")
        transaction.on_commit(lambda: put("hook"))
        raise ToolError("sold_out", "Nothing is left.", left=0)

    answer = shop.write(handler).call("shop.run")
    assert answer.status_code == 409
    assert {"code": "sold_out", "detail": "Nothing is left.", "left": 0}.items() <= answer.json().items()
    assert (stored(), outcomes()) == ([], [("error", "sold_out")])
    assert not Entry.objects.filter(action="shop.row_stored").exists()


def test_a_declared_refusal_after_a_broken_statement_is_the_answer(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        try:
            Setting.objects.create(name="a", value=2)
        except IntegrityError:
            raise ToolError("sold_out", "It is there already.") from None

    machine = shop.write(handler)
    assert machine.call("shop.run").json()["code"] == "sold_out"
    assert (stored(), outcomes()) == ([], [("error", "sold_out")])
    assert is_well(machine)


def test_the_context_of_a_refusal_is_never_a_header_nor_a_standard_member(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        words: dict[str, Any] = {"headers": {"Set-Cookie": "a=b"}, "kind": "odd", "retry": "always", "detail": "other"}
        raise ToolError("sold_out", "Nothing is left.", status=200, **words)

    answer = shop.write(handler).call("shop.run")
    assert answer.status_code == 409
    assert {"status": 409, "detail": "Nothing is left.", "retry": "never"}.items() <= answer.json().items()
    assert "Set-Cookie" not in answer.headers


# --- What a handler does wrong --------------------------------------------------------------------------------------------------------


def _raising(error: BaseException) -> Callable[..., Any]:
    def fault(ctx: Any) -> Any:
        raise error

    return fault


def _logging(*arguments: Any) -> Callable[..., Any]:
    def fault(ctx: Any) -> Any:
        ctx.log(*arguments)
        return {}

    return fault


def _answering(value: Any) -> Callable[..., Any]:
    return lambda ctx: value


_ENDLESS: dict[str, Any] = {}
_ENDLESS["again"] = _ENDLESS

FAULTS: dict[str, Callable[..., Any]] = {
    "raises": _raising(RuntimeError(SECRET)),
    "raises a KeyError": _raising(KeyError(SECRET)),
    "exits": _raising(SystemExit(SECRET)),
    "is cancelled": _raising(asyncio.CancelledError(SECRET)),
    "raises a generator's end": _raising(StopIteration(SECRET)),
    "recurses": _raising(RecursionError(SECRET)),
    "refuses with an undeclared code": _raising(ToolError("invented", SECRET)),
    "refuses with a code that is no text": _raising(ToolError(["sold_out"], SECRET)),  # type: ignore[arg-type]
    "refuses with a message that is no text": _raising(ToolError("sold_out", 7)),  # type: ignore[arg-type]
    "refuses with a context that is no JSON": _raising(ToolError("sold_out", "No.", row=object())),
    "refuses with a lone surrogate": _raising(ToolError("sold_out", "\ud800")),
    "answers nothing": _answering(None),
    "answers a list": _answering([1]),
    "answers a text": _answering("done"),
    "answers three things": _answering(({}, [], 1)),
    "answers effects that are no list": _answering(({}, {"a": 1})),
    "answers an object without a JSON form": _answering({"a": object()}),
    "answers a set": _answering({"a": {1}}),
    "answers bytes": _answering({"a": b"x"}),
    "answers no number": _answering({"a": float("nan")}),
    "answers infinity": _answering({"a": float("inf")}),
    "answers a lone surrogate": _answering({"a": "\ud800"}),
    "answers a member that is no name": _answering({("a",): 1}),
    "answers something endless": _answering(_ENDLESS),
    "answers more than 1 MiB": _answering({"a": "x" * (1024 * 1024)}),
    "logs an action that is none": _logging("Not an action!", "setting", "a"),
    "logs an action that is no text": _logging(7, "setting", "a"),
    "logs in core's name": _logging("api.key_created", "setting", "a"),
    "logs in another module's name": _logging("catalogue.price_changed", "setting", "a"),
    "logs no number": _logging("shop.row_stored", "setting", "a", {"a": float("nan")}),
    "logs metadata that are no mapping": _logging("shop.row_stored", "setting", "a", 7),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_handler_that_goes_wrong_after_writing_leaves_nothing(
    shop: Shop, caplog: pytest.LogCaptureFixture, fault: Callable[..., Any]
) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        ctx.log("shop.row_stored", "setting", "a", {"seen": SECRET})
        transaction.on_commit(lambda: put("hook"))
        return fault(ctx)

    machine = shop.write(handler)
    answer = machine.call("shop.run", headers={"X-Request-ID": "find-me"})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert answer["Content-Type"] == "application/problem+json"
    assert SECRET not in answer.content.decode()
    assert (stored(), outcomes()) == ([], [("error", "internal_error")])
    assert not Entry.objects.filter(action__startswith="shop.").exists()
    line = next(line for line in events(caplog) if line["event"] == "call_failed")
    assert (line["request_id"], line["tool"]) == ("find-me", "shop.run")
    assert isinstance(line["exc_info"], BaseException)
    assert is_well(machine)


def test_a_read_that_goes_wrong_leaves_no_entry_and_a_working_thread(shop: Shop) -> None:
    machine = shop.read(lambda given, ctx: _raising(SystemExit(SECRET))(ctx))
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.json()["code"], outcomes()) == (500, "internal_error", [])
    assert is_well(machine)


def test_a_deferred_constraint_ends_the_effect(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        ApiKey.objects.update(family_id=uuid4())
        return {}

    machine = shop.write(handler)
    assert machine.call("shop.run").status_code == 500
    assert (stored(), outcomes()) == ([], [("error", "internal_error")])
    assert is_well(machine)


def _swallowed() -> None:
    with suppress(IntegrityError):
        Setting.objects.create(name="a", value=2)


def _given_up() -> None:
    transaction.set_rollback(True)


def _left_open() -> None:
    transaction.atomic().__enter__()


def _left_open_twice() -> None:
    transaction.atomic().__enter__()
    transaction.atomic(savepoint=False).__enter__()


def _committed() -> None:
    with connection.cursor() as cursor:
        cursor.execute("COMMIT")


def _rolled_back() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")


def _rolled_back_and_begun() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ROLLBACK")
        cursor.execute("BEGIN")


MEDDLERS = {
    "swallows a broken statement": _swallowed,
    "asks for a rollback": _given_up,
    "leaves a block open": _left_open,
    "leaves two blocks open": _left_open_twice,
    "rolls back by itself": _rolled_back,
    "rolls back and begins": _rolled_back_and_begun,
    "closes the connection": lambda: connection.close(),  # noqa: PLW0108 - `connection` stands for each thread's own
}


@pytest.mark.parametrize("meddle", MEDDLERS.values(), ids=MEDDLERS)
def test_an_effect_that_did_not_commit_is_never_answered_as_done(
    shop: Shop, other: Any, meddle: Callable[[], None]
) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        meddle()
        return {"done": True}

    machine = shop.write(handler)
    answer = machine.call("shop.run")
    assert answer.status_code in (500, 503)
    assert other.execute("SELECT name FROM api_setting").fetchall() == []
    assert outcomes() == [("error", answer.json()["code"])]
    assert not connection.in_atomic_block
    assert is_well(machine)
    assert ("afterwards",) in other.execute("SELECT name FROM api_setting").fetchall()


def test_a_handler_that_commits_by_itself_is_a_fault_and_the_thread_goes_on(shop: Shop, other: Any) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        _committed()
        return {"done": True}

    machine = shop.write(handler)
    assert machine.call("shop.run").status_code == 500
    assert outcomes() == [("error", "internal_error")]
    assert is_well(machine)
    assert ("afterwards",) in other.execute("SELECT name FROM api_setting").fetchall()


# --- Hooks after the commit -----------------------------------------------------------------------------------------------------------


def test_hooks_run_one_by_one_and_never_change_the_answer(
    shop: Shop, other: Any, caplog: pytest.LogCaptureFixture
) -> None:
    ran: list[str] = []

    def seen() -> None:
        ran.append(other.execute("SELECT name FROM api_setting WHERE name = 'a'").fetchone()[0])

    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        for hook in (seen, lambda: _raising(RuntimeError(SECRET))(ctx), lambda: _raising(SystemExit(1))(ctx), seen):
            transaction.on_commit(hook)
        return {"done": True}

    machine = shop.write(handler)
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.json()) == (200, {"done": True})
    assert ran == ["a", "a"]
    assert (stored(), outcomes()) == (["a"], [("ok", None)])
    assert [line["event"] for line in events(caplog)].count("on_commit_hook_failed") == 2
    assert is_well(machine)


def test_a_hook_that_breaks_the_connection_changes_nothing(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        transaction.on_commit(lambda: connection.close())  # noqa: PLW0108 - as above
        transaction.on_commit(lambda: put("b"))
        return {"done": True}

    machine = shop.write(handler)
    assert machine.call("shop.run").status_code == 200
    assert (stored(), outcomes()) == (["a", "b"], [("ok", None)])


# --- The entry and the effect ---------------------------------------------------------------------------------------------------------


@contextmanager
def refusing_entries(outcome: str) -> Iterator[None]:
    """While it is open, the database takes no entry with this outcome."""
    if connection.vendor == "sqlite":
        make = (
            "CREATE TRIGGER no_entries BEFORE INSERT ON activity_entry "
            f"WHEN json_extract(NEW.metadata, '$.outcome') = '{outcome}' "
            "BEGIN SELECT RAISE(ABORT, 'no entries today'); END"
        )
        drop = "DROP TRIGGER no_entries"
    else:
        make = (
            "CREATE FUNCTION no_entries() RETURNS trigger LANGUAGE plpgsql AS "
            "$$BEGIN RAISE EXCEPTION 'no entries today'; END$$; "
            "CREATE TRIGGER no_entries BEFORE INSERT ON activity_entry FOR EACH ROW "
            f"WHEN (NEW.metadata->>'outcome' = '{outcome}') EXECUTE FUNCTION no_entries()"
        )
        drop = "DROP FUNCTION no_entries() CASCADE"
    with connection.cursor() as cursor:
        cursor.execute(make)
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute(drop)


def test_without_its_entry_there_is_no_effect(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    with refusing_entries("ok"):
        assert machine.call("shop.run").status_code == 500
    assert (stored(), outcomes()) == ([], [("error", "internal_error")])
    assert is_well(machine)


def test_without_its_entry_a_preview_is_not_answered(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {})
    with refusing_entries("preview"):
        answer = machine.call("shop.run", {"dry_run": True})
    assert answer.status_code == 503
    assert "preview" not in answer.json()
    assert machine.call("shop.run", {"dry_run": True}).status_code == 200


def test_a_refusal_whose_entry_cannot_be_written_is_still_the_refusal(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        raise RuntimeError(SECRET)

    machine = shop.write(handler)
    with refusing_entries("error"):
        assert machine.call("shop.run").status_code == 500
        assert machine.call("shop.put", {}).status_code == 422
    assert stored() == []
    assert [line["event"] for line in events(caplog)].count("not_finished") == 2


def test_an_entry_names_what_happened_and_never_the_input_or_the_result(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        ctx.log("shop.row_stored", "setting", "a", {"rows": 1, "via": "forged", "confirmation_uuid": "forged"})
        return {"answer": "result-canary"}

    declared = {"type": "object", "properties": {"rows": {"type": "array"}, "word": {"type": "string"}}}
    machine = shop.write(handler, input_schema=declared)
    machine.call("shop.run", {"rows": [1, 2, 3], "word": "input-canary"}, headers={"X-Request-ID": "find-me"})
    request, own = Entry.objects.exclude(action="api.key_created").order_by("action")
    assert machine.key is not None
    assert request.metadata == {
        "tool": "shop.run",
        "key": machine.key.public_id,
        "rows": 3,
        "outcome": "ok",
        "code": None,
        "confirmation_uuid": None,
    }
    assert (request.actor_kind, request.actor_uuid, request.mode) == ("key", str(machine.key.pk), "auto")
    assert (own.metadata, own.actor_uuid) == ({"rows": 1, "via": None, "confirmation_uuid": None}, request.actor_uuid)
    assert {request.request_id, own.request_id} == {"find-me"}
    for entry in (request, own):
        assert "canary" not in repr(vars(entry))


# --- Whose transaction ----------------------------------------------------------------------------------------------------------------


def test_the_gate_does_not_run_inside_a_callers_transaction(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    with transaction.atomic():
        assert machine.call("shop.run").status_code == 500
    assert (stored(), outcomes()) == ([], [])


def test_the_gate_does_not_run_where_autocommit_is_off(shop: Shop, other: Any) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    transaction.set_autocommit(False)
    try:
        answer = machine.call("shop.run")
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert answer.status_code == 500
    assert other.execute("SELECT name FROM api_setting").fetchall() == []
    assert is_well(machine)


def test_an_effect_and_its_entries_are_one_transaction_with_one_commit(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        ctx.log("shop.row_stored", "setting", "a")
        return {}

    machine = shop.write(handler)
    machine.call("shop.put", {"name": "the first call notes the key's use"})
    with CaptureQueriesContext(connection) as captured:
        machine.call("shop.run")
    words = [query["sql"].split()[0] for query in captured.captured_queries]
    assert (words.count("BEGIN"), words.count("COMMIT"), words.count("ROLLBACK")) == (1, 1, 0)
    entries = [at for at, query in enumerate(captured.captured_queries) if 'INTO "activity_entry"' in query["sql"]]
    assert len(entries) == 2
    assert words.index("BEGIN") < entries[0] < entries[1] < words.index("COMMIT")


def test_the_transaction_waits_five_seconds_for_a_lock_and_takes_the_default_isolation(
    shop: Shop, postgres_url: str
) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        return {name: _shown(name) for name in ("lock_timeout", "transaction_isolation")}

    answer = shop.write(handler).call("shop.run").json()
    assert answer == {"lock_timeout": "5s", "transaction_isolation": "read committed"}
    assert _shown("lock_timeout") == "0"


def test_a_conditional_danger_and_its_effect_see_one_state(shop: Shop, postgres_url: str) -> None:
    seen: list[str] = []

    def rule(given: Any, ctx: Any) -> bool:
        seen.append(_shown("transaction_isolation"))
        return False

    def handler(given: Any, ctx: Any) -> Any:
        return {name: _shown(name) for name in ("lock_timeout", "transaction_isolation", "transaction_read_only")}

    answer = shop.write(handler, danger=rule).call("shop.run").json()
    assert answer == {"lock_timeout": "5s", "transaction_isolation": "repeatable read", "transaction_read_only": "off"}
    assert seen == ["repeatable read"]


def _shown(name: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {name}")
        return str(cursor.fetchone()[0])


# --- Other transactions ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("conflicts", [1, 3, 4])
def test_a_serialization_failure_starts_the_effect_again_three_times_at_most(
    shop: Shop, postgres: Any, conflicts: int
) -> None:
    attempts = itertools.count(1)
    tried: list[int] = []

    def handler(given: Any, ctx: Any) -> Any:
        tried.append(next(attempts))
        ctx.log("shop.row_stored", "setting", "a")
        row = Setting.objects.get(name="a")
        if tried[-1] <= conflicts:
            postgres.execute("UPDATE api_setting SET value = '\"theirs\"' WHERE name = 'a'")
        row.value = f"ours after {row.value}"
        row.save(update_fields=["value"])
        return {"tried": tried[-1]}

    machine = shop.write(handler, danger=lambda given, ctx: False)
    put("a", "first")
    answer = machine.call("shop.run")
    value = Setting.objects.get(name="a").value
    if conflicts <= 3:
        assert (answer.status_code, answer.json()) == (200, {"tried": conflicts + 1})
        assert (value, outcomes()) == ("ours after theirs", [("ok", None)])
        assert Entry.objects.filter(action="shop.row_stored").count() == 1
    else:
        assert (answer.status_code, answer.json()["reason"]) == (409, "serialization")
        assert answer.json()["retry"] == "same_key"
        assert (len(tried), value, outcomes()) == (4, "theirs", [("error", "conflict")])
        assert not Entry.objects.filter(action="shop.row_stored").exists()


def test_a_restart_sees_the_input_as_it_came(shop: Shop, postgres: Any) -> None:
    seen: list[list[int]] = []

    def handler(given: Any, ctx: Any) -> Any:
        seen.append(list(given["rows"]))
        given["rows"].clear()
        Setting.objects.get(name="a")
        if len(seen) == 1:
            postgres.execute("UPDATE api_setting SET value = '2' WHERE name = 'a'")
        Setting.objects.filter(name="a").update(value=3)
        return {}

    rows = {"type": "object", "properties": {"rows": {"type": "array"}}}
    machine = shop.write(handler, input_schema=rows, danger=lambda given, ctx: bool(given["rows"].clear()))
    put("a")
    assert machine.call("shop.run", {"rows": [1, 2]}).status_code == 200
    assert seen == [[1, 2], [1, 2]]
    assert Entry.objects.get(action="api.request").metadata["rows"] == 2


def test_a_default_that_a_handler_changed_is_fresh_in_the_next_call(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        given["rows"].append(1)
        return {"rows": given["rows"]}

    rows = {"type": "object", "properties": {"rows": {"type": "array", "default": []}}}
    machine = shop.write(handler, input_schema=rows)
    assert machine.call("shop.run").json() == {"rows": [1]}
    assert machine.call("shop.run").json() == {"rows": [1]}


def test_a_deadlock_starts_the_effect_again(shop: Shop, postgres: Any, database_url: str) -> None:
    tried: list[int] = []

    def handler(given: Any, ctx: Any) -> Any:
        tried.append(1)
        if len(tried) > 1:
            postgres.pgconn.get_result()  # their second update, which our defeat let through
            postgres.pgconn.get_result()
            postgres.execute("COMMIT")
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL deadlock_timeout = '20ms'")
        Setting.objects.filter(name="a").update(value="ours")
        if len(tried) == 1:
            postgres.pgconn.send_query(b"UPDATE api_setting SET value = '\"theirs\"' WHERE name = 'a'")
            _until_somebody_waits(database_url)
        Setting.objects.filter(name="b").update(value="ours")
        return {}

    machine = shop.write(handler)
    put("a")
    put("b")
    postgres.execute("SET deadlock_timeout = '1min'")
    postgres.execute("BEGIN")
    postgres.execute("UPDATE api_setting SET value = '\"theirs\"' WHERE name = 'b'")
    assert machine.call("shop.run").status_code == 200
    assert (len(tried), outcomes()) == (2, [("ok", None)])
    assert set(Setting.objects.values_list("value", flat=True)) == {"ours"}


def _until_somebody_waits(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as third:
        for _ in range(100_000):
            if third.execute("SELECT 1 FROM pg_locks WHERE NOT granted").fetchone():
                return
    raise AssertionError("Nobody waits.")


def test_a_lock_wait_that_is_over_is_a_conflict(shop: Shop, postgres: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "LOCK_WAIT", "50ms")

    def handler(given: Any, ctx: Any) -> Any:
        put("b")
        Setting.objects.filter(name="a").update(value="ours")
        return {}

    machine = shop.write(handler)
    put("a")
    postgres.execute("BEGIN")
    postgres.execute("UPDATE api_setting SET value = '2' WHERE name = 'a'")
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.json()["code"], answer.json()["reason"]) == (409, "conflict", "busy")
    assert (stored(), outcomes()) == (["a"], [("error", "conflict")])
    postgres.execute("ROLLBACK")
    assert machine.call("shop.run").status_code == 200


def test_a_busy_sqlite_is_unavailable_and_works_afterwards(shop: Shop, other: Any) -> None:
    if connection.vendor != "sqlite":
        pytest.skip("SQLite alone has one writer")
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout = 20")
    other.execute("BEGIN IMMEDIATE")
    answer = machine.call("shop.run")
    other.execute("ROLLBACK")
    assert (answer.status_code, answer.json()["code"], answer.json()["retry"]) == (503, "unavailable", "same_key")
    assert int(answer.headers["Retry-After"]) >= 1
    assert stored() == []
    assert machine.call("shop.run").status_code == 200


# --- A change between the danger rule and the effect ----------------------------------------------------------------------------------


def _limit() -> int:
    return int(Setting.objects.get(name="limit").value)


def test_a_danger_that_arises_during_the_effect_ends_in_the_prompt(shop: Shop, postgres: Any) -> None:
    asked: list[int] = []

    def rule(given: Any, ctx: Any) -> bool:
        asked.append(_limit())
        return asked[-1] < 5

    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        if len(asked) == 1:
            postgres.execute("UPDATE api_setting SET value = '1' WHERE name = 'limit'")
        Setting.objects.filter(name="limit").update(value=9)
        return {}

    machine = shop.write(handler, danger=rule)
    put("limit", 10)
    answer = machine.call("shop.run")
    assert asked == [10, 1]
    assert answer.json()["status"] == "confirmation_required"
    assert (_limit(), stored(), outcomes()) == (1, ["limit"], [("confirmation_required", None)])


def test_what_the_rule_and_the_handler_read_is_one_state(shop: Shop, other: Any) -> None:
    """Nobody can change a value between the two: PostgreSQL keeps the snapshot, SQLite has no other writer."""
    read: list[int] = []

    def rule(given: Any, ctx: Any) -> bool:
        read.append(_limit())
        with suppress(sqlite3.OperationalError):
            other.execute("UPDATE api_setting SET value = '1' WHERE name = 'limit'")
        return False

    def handler(given: Any, ctx: Any) -> Any:
        read.append(_limit())
        return {}

    machine = shop.write(handler, danger=rule)
    put("limit", 10)
    assert machine.call("shop.run").status_code == 200
    assert read == [10, 10]


@pytest.mark.parametrize("answer", [None, 1, 0, "no", []])
def test_a_danger_that_says_neither_yes_nor_no_runs_nothing(shop: Shop, answer: Any) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")}, danger=lambda given, ctx: answer)
    assert machine.call("shop.run").json()["code"] == "internal_error"
    assert (stored(), outcomes()) == ([], [("error", "internal_error")])


def test_a_danger_that_raises_runs_nothing(shop: Shop) -> None:
    def rule(given: Any, ctx: Any) -> bool:
        raise RuntimeError(SECRET)

    machine = shop.write(lambda given, ctx: {"done": put("a")}, danger=rule)
    assert machine.call("shop.run").json()["code"] == "internal_error"
    assert (stored(), outcomes()) == ([], [("error", "internal_error")])


# --- The connection and the database --------------------------------------------------------------------------------------------------


def _backend() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_connection_killed_during_the_handler_is_unavailable(shop: Shop, postgres: Any) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        postgres.execute("SELECT pg_terminate_backend(%s, 5000)", [_backend()])
        put("b")
        return {}

    machine = shop.write(handler)
    answer = machine.call("shop.run")
    assert (answer.status_code, answer.json()["code"], answer.json()["retry"]) == (503, "unavailable", "same_key")
    assert answer.headers["Retry-After"]
    assert (stored(), outcomes()) == ([], [("error", "unavailable")])
    assert is_well(machine)


def test_a_connection_killed_under_a_handler_that_does_not_notice_is_unavailable(shop: Shop, postgres: Any) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        postgres.execute("SELECT pg_terminate_backend(%s, 5000)", [_backend()])
        return {"done": True}

    answer = shop.write(handler).call("shop.run")
    assert (answer.status_code, answer.json()["retry"]) == (503, "same_key")
    assert (stored(), outcomes()) == ([], [("error", "unavailable")])


def test_a_connection_killed_at_the_commit_may_have_committed(shop: Shop, postgres: Any) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    postgres.execute(
        "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS "
        "$$BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END$$"
    )
    postgres.execute(
        "CREATE CONSTRAINT TRIGGER die AFTER INSERT ON activity_entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "
        "WHEN (NEW.metadata->>'outcome' = 'ok') EXECUTE FUNCTION die()"
    )
    answer = machine.call("shop.run")
    postgres.execute("DROP FUNCTION die() CASCADE")
    assert (answer.status_code, answer.json()["code"], answer.json()["retry"]) == (503, "unavailable", "never")
    assert "may have happened" in answer.json()["detail"]
    assert stored() == []
    assert is_well(machine)


def test_a_commit_whose_answer_was_lost_leaves_the_entry_of_the_effect_alone(
    shop: Shop, postgres: Any, caplog: pytest.LogCaptureFixture
) -> None:
    django: Any = connections["default"]

    def lose_the_answer() -> None:
        del django._commit
        django._commit()
        django.connection.close()
        raise OperationalError("the connection was lost")

    def handler(given: Any, ctx: Any) -> Any:
        django._commit = lose_the_answer
        return {"done": put("a")}

    answer = shop.write(handler).call("shop.run")
    assert (answer.status_code, answer.json()["retry"]) == (503, "never")
    assert (stored(), outcomes()) == (["a"], [("ok", None)])
    assert "not_finished" not in [line["event"] for line in events(caplog)]


def test_an_idle_connection_that_was_killed_is_replaced_without_a_word(shop: Shop, postgres: Any) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    postgres.execute("SELECT pg_terminate_backend(%s, 5000)", [_backend()])
    assert machine.call("shop.run").status_code == 200
    assert (stored(), outcomes()) == (["a"], [("ok", None)])


@contextmanager
def _database_elsewhere() -> Iterator[None]:
    """While it is open, new connections go where no database is."""
    changed = {"PORT": "1"} if connection.vendor == "postgresql" else {"NAME": "/nowhere/at/all.sqlite3"}
    before = {name: connection.settings_dict[name] for name in changed}
    connection.close()
    connection.settings_dict.update(changed)
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)


def test_a_database_that_is_down_is_503_and_back_without_a_restart(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {"done": put("a")})
    with _database_elsewhere():
        answers = [machine.call("shop.run"), machine.call("no.such"), machine.client.get("/api/v1/tools")]
    for answer in answers:
        assert (answer.status_code, answer.json()["code"]) == (503, "unavailable")
        assert answer["Content-Type"] == "application/problem+json"
        assert answer.headers["Retry-After"]
    assert machine.call("shop.run").status_code == 200
    assert stored() == ["a"]


# --- Async handlers -------------------------------------------------------------------------------------------------------------------


def test_an_async_handler_shares_the_transaction(shop: Shop) -> None:
    async def handler(given: Any, ctx: Any) -> Any:
        await sync_to_async(put)("a")
        row = await Setting.objects.aget(name="a")
        if given.get("refuse"):
            raise ToolError("sold_out", "Nothing is left.")
        if given.get("leave"):
            raise SystemExit(SECRET)
        return {"name": row.name}

    names = {name: {"type": "boolean"} for name in ("refuse", "leave")}
    machine = shop.write(handler, input_schema={"type": "object", "properties": names})
    assert machine.call("shop.run", {"refuse": True}).json()["code"] == "sold_out"
    assert machine.call("shop.run", {"leave": True}).status_code == 500
    assert stored() == []
    assert machine.call("shop.run").json() == {"name": "a"}
    assert stored() == ["a"]
    assert outcomes() == [("error", "sold_out"), ("error", "internal_error"), ("ok", None)]


def test_an_async_preview_and_an_async_rule_work(shop: Shop) -> None:
    async def shown(given: Any, ctx: Any) -> Any:
        return {"summary": await Setting.objects.acount()}, "fixed"

    async def rule(given: Any, ctx: Any) -> bool:
        return await Setting.objects.filter(name="danger").aexists()

    machine = shop.write(lambda given, ctx: {"done": True}, shown=shown, danger=rule)
    assert machine.call("shop.run", {"dry_run": True}).json()["preview"] == {"summary": 0}
    assert machine.call("shop.run").json() == {"done": True}
    put("danger")
    assert machine.call("shop.run").json()["status"] == "confirmation_required"


# --- Previews -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shown",
    [
        None,
        {"summary": "x"},
        ({"summary": "x"}, ""),
        ({"summary": "x"}, "x" * 65),
        ({"summary": "x"}, "ü" * 33),
        ({"summary": "x"}, "\ud800"),
        ({"summary": "x"}, 7),
        ({"summary": "x"}, None),
        (["x"], "fixed"),
        ({"summary": {1}}, "fixed"),
        ({"summary": "x" * (256 * 1024)}, "fixed"),
        ({"summary": "x"}, "fixed", "more"),
    ],
    ids=lambda shown: repr(shown)[:40].encode("ascii", "backslashreplace").decode(),
)
def test_an_odd_preview_is_a_500(shop: Shop, shown: Any) -> None:
    machine = shop.write(lambda given, ctx: {}, shown=lambda given, ctx: shown)
    answer = machine.call("shop.run", {"dry_run": True})
    assert (answer.status_code, answer.json()["code"]) == (500, "internal_error")
    assert outcomes() == [("error", "internal_error")]


def test_a_preview_that_refuses_is_the_answer_and_logs_nothing(shop: Shop) -> None:
    def shown(given: Any, ctx: Any) -> Any:
        ctx.log("shop.row_stored", "setting", "a")
        if given.get("refuse"):
            raise ToolError("sold_out", "Nothing is left.")
        return {"summary": "x"}, "ü" * 32

    flag = {"type": "object", "properties": {"refuse": {"type": "boolean"}}}
    machine = shop.write(lambda given, ctx: {}, shown=shown, input_schema=flag)
    assert machine.call("shop.run", {"dry_run": True}).json() == {"status": "preview", "preview": {"summary": "x"}}
    assert machine.call("shop.run", {"dry_run": True, "refuse": True}).json()["code"] == "sold_out"
    assert outcomes() == [("preview", None), ("error", "sold_out")]
    assert not Entry.objects.filter(action="shop.row_stored").exists()


# --- The input of each attempt ----------------------------------------------------------------------------------------------------------


def test_a_restart_of_a_typed_handler_sees_the_input_as_it_came(shop: Shop, postgres: Any) -> None:
    module = Module(key="shop", name="Shop")
    seen: list[list[int]] = []

    @module.tool("shop.take", scope=SCOPE, permission=PERMISSION, danger=lambda ctx, *, rows: bool(rows.clear()))
    def take(ctx: Any, *, rows: list[int]) -> dict[str, Any]:
        seen.append(list(rows))
        rows.clear()
        Setting.objects.get(name="a")
        if len(seen) == 1:
            postgres.execute("UPDATE api_setting SET value = '2' WHERE name = 'a'")
        Setting.objects.filter(name="a").update(value=3)
        return {}

    @take.preview
    def shown(ctx: Any, *, rows: list[int]) -> Any:
        return {"summary": "x"}, "fixed"

    machine = shop.open(module)
    put("a")
    assert machine.call("shop.take", {"rows": [1, 2]}).status_code == 200
    assert seen == [[1, 2], [1, 2]]
