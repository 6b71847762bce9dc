"""Asked once (SPEC 10): the table of records row by row, keys by both doors, what is stored and what is not."""

import json
import time
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.utils import timezone

from apps.activity import log as activity
from apps.activity.models import Entry
from apps.api import Module, ToolError, canonical, idempotency, keys, lifesigns, records, registry
from apps.api.call import Answer, Refusal
from apps.api.lifesigns import Work
from apps.api.models import Confirmation, IdempotencyRecord, KeyFamily, Lifesign, Setting
from apps.api.problems import Problem
from tests.api import factories
from tests.api.factories import Machine
from tests.api.shop import PERMISSION, SCOPE, Shop, harmless, make_module, put, stored

pytestmark = pytest.mark.sqlite

State = IdempotencyRecord.State
NUMBER = {"type": "object", "properties": {"n": {}, "d": {"type": "integer", "default": 3}}}


class Counter:
    """`shop.run` counts in the database how often it ran, and in the process how often it was asked to."""

    def __init__(self, shop: Shop, **declared: Any) -> None:
        self.asked = 0
        self.fail: BaseException | None = None
        self.machine = shop.write(self.handler, **{"input_schema": NUMBER, **declared})

    def handler(self, given: Any, ctx: Any) -> Any:
        self.asked += 1
        family = KeyFamily.objects.create()
        put(str(family.pk))
        if self.fail is not None:
            raise self.fail
        return {"n": given.get("n"), "run": self.asked}

    @property
    def effects(self) -> int:
        return len(stored())

    def call(self, body: Any = None, *, machine: Machine | None = None, **more: Any) -> Any:
        return (machine or self.machine).call("shop.run", body, **more)

    def record(self, *, key: str = "k", n: Any = 1, **fields: Any) -> IdempotencyRecord:
        """A record of this machine's call."""
        assert self.machine.key is not None
        return factories.make_record(
            caller=f"key:{self.machine.key.family_id}",
            tool="shop.run",
            key=key,
            input_hash=canonical.digest("shop.run", {"n": n}),
            **fields,
        )


@pytest.fixture
def counter(shop: Shop) -> Counter:
    return Counter(shop)


def outcomes() -> list[tuple[str, str | None]]:
    entries = Entry.objects.filter(action="api.request").order_by("created_at")
    return [(entry.metadata["outcome"], entry.metadata["code"]) for entry in entries]


def told(answer: Any) -> str:
    """`ran`, `replayed`, or the code of the refusal."""
    if "Idempotent-Replayed" in answer.headers:
        return "replayed"
    return "ran" if answer.status_code == 200 else str(answer.json()["code"])


# --- The table ------------------------------------------------------------------------------------------------------------------------

ALIVE, OVER, NEVER = "alive", "over", "no sign"
RUNNING, UNKNOWN, REUSED = "idempotency_in_progress", "idempotency_outcome_unknown", "idempotency_key_reused"

# State, external, lease, age in hours, same input -> what the caller is told, and the record's state and attempt afterwards.
TABLE: list[tuple[State, bool, str, int, bool, str, str, int]] = [
    (State.RUNNING, False, ALIVE, 0, True, RUNNING, "running", 3),
    (State.RUNNING, False, ALIVE, 0, False, REUSED, "running", 3),
    (State.RUNNING, False, OVER, 0, True, "ran", "done", 4),
    (State.RUNNING, False, OVER, 0, False, REUSED, "running", 3),
    (State.RUNNING, False, NEVER, 0, True, "ran", "done", 4),
    (State.RUNNING, False, ALIVE, 100, True, RUNNING, "running", 3),
    (State.RUNNING, False, OVER, 100, True, "ran", "done", 4),
    (State.RUNNING, True, ALIVE, 0, True, RUNNING, "running", 3),
    (State.RUNNING, True, ALIVE, 0, False, REUSED, "running", 3),
    (State.RUNNING, True, OVER, 0, True, UNKNOWN, "unknown", 3),
    (State.RUNNING, True, OVER, 0, False, REUSED, "running", 3),
    (State.RUNNING, True, NEVER, 100, True, UNKNOWN, "unknown", 3),
    (State.WAITING, False, NEVER, 0, True, "ran", "done", 4),
    (State.WAITING, False, ALIVE, 71, True, "ran", "done", 4),
    (State.WAITING, False, NEVER, 0, False, REUSED, "waiting", 3),
    (State.WAITING, False, NEVER, 73, True, "ran", "done", 1),
    (State.WAITING, False, NEVER, 73, False, "ran", "done", 1),
    (State.WAITING, True, NEVER, 0, True, "ran", "done", 4),
    (State.WAITING, True, NEVER, 0, False, REUSED, "waiting", 3),
    (State.DONE, False, NEVER, 0, True, "replayed", "done", 3),
    (State.DONE, False, ALIVE, 0, True, "replayed", "done", 3),
    (State.DONE, False, NEVER, 71, True, "replayed", "done", 3),
    (State.DONE, False, NEVER, 0, False, REUSED, "done", 3),
    (State.DONE, False, NEVER, 73, True, "ran", "done", 1),
    (State.DONE, False, NEVER, 73, False, "ran", "done", 1),
    (State.DONE, True, NEVER, 0, True, "replayed", "done", 3),
    (State.DONE, True, NEVER, 73, True, "ran", "done", 1),
    (State.UNKNOWN, True, NEVER, 0, True, UNKNOWN, "unknown", 3),
    (State.UNKNOWN, True, NEVER, 0, False, REUSED, "unknown", 3),
    (State.UNKNOWN, True, NEVER, 1000, True, UNKNOWN, "unknown", 3),
]


@pytest.mark.parametrize(("state", "external", "lease", "hours", "same", "answer", "after", "attempt"), TABLE)
def test_the_table_of_records(
    shop: Shop,
    state: State,
    external: bool,
    lease: str,
    hours: int,
    same: bool,
    answer: str,
    after: str,
    attempt: int,
) -> None:
    counter = Counter(shop, reach="external" if external else "database")
    before = timezone.now() - timedelta(hours=hours)
    done: Any = {"status": 200, "body": b'{"first":true}', "finished_at": before} if state == State.DONE else {}
    record = counter.record(state=state, external=external, attempt=3, **done)
    IdempotencyRecord.objects.filter(pk=record.pk).update(created_at=before)
    sign(Work(kind="call", uuid=record.uuid, attempt=3), lease)

    found = counter.call({"n": 1 if same else 2, "idempotency_key": "k"})

    assert told(found) == answer
    row = IdempotencyRecord.objects.get()
    assert (row.state, row.attempt) == (after, attempt)
    assert counter.effects == (1 if answer == "ran" else 0)
    assert outcomes() == {"replayed": [], "ran": [("ok", None)]}.get(answer, [("error", answer)])
    assert found.headers.get("Retry-After") == ("2" if answer == RUNNING else None)


def sign(work: Work, lease: str) -> None:
    if lease == NEVER:
        return
    lifesigns.begin(work)
    if lease == OVER and connection.vendor == "postgresql":
        Lifesign.objects.filter(uuid=work.uuid).update(seen_at=Now() - timedelta(seconds=lifesigns.lease_seconds() + 1))
    elif lease == OVER:
        lifesigns._renewer._seen[work] = time.monotonic() - lifesigns.lease_seconds() - 1


def test_the_sign_of_an_earlier_attempt_does_not_count(counter: Counter) -> None:
    record = counter.record(state=State.RUNNING, attempt=3)
    lifesigns.begin(Work(kind="call", uuid=record.uuid, attempt=2))
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


def test_the_retention_is_a_setting(counter: Counter) -> None:
    counter.record(state=State.DONE, finished_at=timezone.now() - timedelta(hours=3))
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "replayed"
    factories.set_setting("idempotency_retention", 2)
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


def test_what_to_do_next_is_told(counter: Counter) -> None:
    for number, (state, n, retry) in enumerate(
        [(State.RUNNING, 1, "same_key"), (State.UNKNOWN, 1, "never"), (State.DONE, 2, "new_key")]
    ):
        record = counter.record(key=str(number), state=state, external=True)
        sign(Work(kind="call", uuid=record.uuid, attempt=1), ALIVE)
        assert counter.call({"n": n, "idempotency_key": str(number)}).json()["retry"] == retry


# --- Keys -----------------------------------------------------------------------------------------------------------------------------

LONGEST = "".join(chr(0x21 + number % 94) for number in range(255)).replace('"', "x")

KEYS: list[tuple[str, str | None]] = [
    ("k", "k"),
    ('"k"', "k"),
    ("a b", "a b"),
    ('a"b', 'a"b'),
    ('"a\\"b"', 'a"b'),
    ('"a\\\\b"', "a\\b"),
    ("a\\b", "a\\b"),
    ('k"', 'k"'),
    ("~", "~"),
    (" ", " "),
    ("x" * 255, "x" * 255),
    (f'"{"x" * 255}"', "x" * 255),
    ('"' + '\\"' * 255 + '"', '"' * 255),
    (LONGEST, LONGEST),
    ("x" * 256, None),
    (f'"{"x" * 256}"', None),
    ('"' + '\\"' * 256 + '"', None),
    ('""', None),
    ('"', None),
    ('"k', None),
    ('"a"b"', None),
    ('"a\\b"', None),
    ('"k";p=1', None),
    ('"k","k"', None),
    ("é", None),
    ("k\u00a0", None),
    ("a\nb", None),
    ("k\n", None),
    ("a\tb", None),
    ("k\x7f", None),
    ("日本", None),
    ("😀", None),
    ("", None),
]


@pytest.mark.parametrize(("text", "key"), KEYS, ids=lambda part: ascii(part)[:24])
def test_a_key_in_the_field(counter: Counter, text: str, key: str | None) -> None:
    found = counter.call({"n": 1, "idempotency_key": text})
    if key is None:
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
        assert (counter.asked, IdempotencyRecord.objects.count()) == (0, 0)
    else:
        assert (told(found), IdempotencyRecord.objects.get().key) == ("ran", key)


@pytest.mark.parametrize(
    ("text", "key"), [row for row in KEYS if "\n" not in row[0]], ids=lambda part: ascii(part)[:24]
)
def test_a_key_in_the_header(counter: Counter, text: str, key: str | None) -> None:
    # As a server gives it to WSGI: the bytes as Latin-1.
    found = counter.call({"n": 1}, headers={"Idempotency-Key": text.encode().decode("latin-1")})
    if key is None:
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
        assert (counter.asked, IdempotencyRecord.objects.count()) == (0, 0)
    else:
        assert (told(found), IdempotencyRecord.objects.get().key) == ("ran", key)


@pytest.mark.parametrize("odd", [None, 1, True, ["k"], {"k": 1}])
def test_a_key_that_is_no_text_is_refused(counter: Counter, odd: Any) -> None:
    for headers in ({}, {"Idempotency-Key": "k"}):
        found = counter.call({"n": 1, "idempotency_key": odd}, headers=headers)
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
    assert counter.asked == 0


@pytest.mark.parametrize(
    ("header", "field", "same"),
    [
        ("k", "k", True),
        ('"k"', "k", True),
        ("k", '"k"', True),
        ('"k"', '"k"', True),
        ('"a\\"b"', 'a"b', True),
        ("k", "l", False),
        ("k", "K", False),
        ("k", "k ", False),
        ('"k"', '"k', False),
        ("", "k", False),
    ],
)
def test_header_and_field_must_be_the_same_key(counter: Counter, header: str, field: str, same: bool) -> None:
    found = counter.call({"n": 1, "idempotency_key": field}, headers={"Idempotency-Key": header})
    assert found.status_code == (200 if same else 422)
    if not same:
        assert found.json()["errors"][0]["pointer"] == "/idempotency_key"
    assert counter.asked == int(same)


def test_the_bare_and_the_quoted_key_are_one_by_either_door(counter: Counter) -> None:
    first = counter.call({"n": 1, "idempotency_key": "k"})
    for field, header in (("k", None), ('"k"', None), (None, "k"), (None, '"k"'), ("k", '"k"')):
        body = {"n": 1} if field is None else {"n": 1, "idempotency_key": field}
        again = counter.call(body, headers={"Idempotency-Key": header} if header else {})
        assert (told(again), again.content) == ("replayed", first.content)
    assert counter.effects == 1


def test_a_read_does_not_look_at_the_header_and_refuses_the_field(shop: Shop) -> None:
    machine = shop.read(lambda given, ctx: {"read": True})
    for header in ("k", "", '"', "x" * 300):
        assert machine.call("shop.run", {}, headers={"Idempotency-Key": header}).json() == {"read": True}
    for name, value in (("idempotency_key", "k"), ("dry_run", False), ("confirm_token", "c")):
        found = machine.call("shop.run", {name: value})
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, f"/{name}")
    assert not IdempotencyRecord.objects.exists()


def test_a_tool_that_is_not_replayed_refuses_a_key_by_either_door(shop: Shop) -> None:
    counter = Counter(shop, replay=False)
    for body, headers in (({"idempotency_key": "k"}, {}), ({}, {"Idempotency-Key": "k"})):
        found = counter.call(body, headers=headers)
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
    assert told(counter.call({})) == "ran"
    assert counter.effects == 1


def test_a_preview_validates_the_key_and_makes_no_use_of_it(counter: Counter) -> None:
    for _ in range(2):
        assert counter.call({"n": 1, "dry_run": True, "idempotency_key": "k"}).json()["status"] == "preview"
    assert counter.call({"n": 1, "dry_run": True, "idempotency_key": '"'}).status_code == 422
    assert not IdempotencyRecord.objects.exists()
    assert told(counter.call({"n": 2, "idempotency_key": "k"})) == "ran"
    assert counter.call({"n": 3, "dry_run": True, "idempotency_key": "k"}).json()["status"] == "preview"


# --- Whose key it is ------------------------------------------------------------------------------------------------------------------


def test_another_callers_key_is_another_key(counter: Counter) -> None:
    other = factories.make_machine(scopes=[SCOPE])
    first = counter.call({"n": 1, "idempotency_key": "k"})
    theirs = counter.call({"n": 2, "idempotency_key": "k"}, machine=other)
    assert (told(first), told(theirs), theirs.json()["n"]) == ("ran", "ran", 2)
    assert counter.effects == 2
    assert counter.call({"n": 1, "idempotency_key": "k"}).content == first.content
    assert counter.call({"n": 2, "idempotency_key": "k"}, machine=other).content == theirs.content


def test_a_key_of_another_caller_that_runs_or_is_unknown_gives_no_hint(counter: Counter) -> None:
    other = factories.make_machine(scopes=[SCOPE])
    for key, state in (("a", State.RUNNING), ("b", State.UNKNOWN), ("c", State.WAITING)):
        record = counter.record(key=key, state=state)
        sign(Work(kind="call", uuid=record.uuid, attempt=1), ALIVE)
        assert told(counter.call({"n": 2, "idempotency_key": key}, machine=other)) == "ran"


def test_a_rotated_key_has_the_keys_of_its_family(counter: Counter) -> None:
    first = counter.call({"n": 1, "idempotency_key": "k"})
    assert counter.machine.key is not None
    _, text = keys.rotate(
        counter.machine.key, grace=timedelta(hours=1), by=factories.make_owner(superuser=True), actor=factories.SYSTEM
    )
    again = counter.call({"n": 1, "idempotency_key": "k"}, machine=Machine(text=text))
    assert (told(again), again.content) == ("replayed", first.content)


def test_one_key_on_two_tools_is_two_keys(counter: Counter) -> None:
    first = counter.call({"n": 1, "idempotency_key": "k"})
    second = counter.machine.call("shop.put", {"name": "a", "idempotency_key": "k"})
    assert (told(first), told(second)) == ("ran", "ran")
    assert IdempotencyRecord.objects.count() == 2


def make_public(shop: Shop, **declared: Any) -> tuple[Machine, list[Any]]:
    """A public write that knows its callers by the field `visitor`."""
    factories.set_setting("api_public_enabled", True)
    module, ran = Module(key="shop", name="Shop"), list[Any]()

    def ask(given: Any, ctx: Any) -> Any:
        ran.append(given)
        return {"run": len(ran)}

    fields = {"type": "object", "properties": {"visitor": {"type": "string"}, "n": {}}}
    tool = module.tool("shop.ask", audience="public", input_schema=fields, client_token="visitor", **declared)(ask)
    tool.preview(harmless)
    shop.open(module)
    return Machine(), ran


def test_a_public_callers_key_belongs_to_its_token(shop: Shop) -> None:
    visitor, ran = make_public(shop)
    one, two = "token-of-visitor-1", "token-of-visitor-2"
    first = visitor.call("shop.ask", {"visitor": one, "idempotency_key": "k"})
    assert told(visitor.call("shop.ask", {"visitor": one, "idempotency_key": "k"})) == "replayed"
    assert told(visitor.call("shop.ask", {"visitor": two, "idempotency_key": "k"})) == "ran"
    assert told(visitor.call("shop.ask", {"visitor": two, "n": 1, "idempotency_key": "k"})) == REUSED
    assert (len(ran), first.json()) == (2, {"run": 1})
    assert one not in "".join(IdempotencyRecord.objects.values_list("caller", flat=True))


@pytest.mark.parametrize("external", [False, True])
def test_a_public_caller_without_a_token_has_no_keys(shop: Shop, external: bool) -> None:
    visitor, ran = make_public(shop, **({"reach": "external"} if external else {}))
    for body, headers in (({"idempotency_key": "k"}, {}), ({}, {"Idempotency-Key": "k"})):
        found = visitor.call("shop.ask", body, headers=headers)
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/idempotency_key")
    assert ran == []
    assert told(visitor.call("shop.ask", {"n": 1})) == "ran"
    assert told(visitor.call("shop.ask", {"n": 1})) == "ran"


# --- The same input -------------------------------------------------------------------------------------------------------------------


def test_the_same_input_in_another_form_is_replayed(counter: Counter) -> None:
    counter.call('{"n": {"a": 1, "b": [2, 3]}, "idempotency_key": "k"}')
    for body in (
        '{"idempotency_key": "k", "n": {"b": [2, 3], "a": 1}}',
        '{"n": {"a": 1.0, "b": [2e0, 3]}, "idempotency_key": "\\"k\\""}',
        '{"n": {"\\u0061": 1, "b": [2, 3]}, "idempotency_key": "k", "dry_run": false}',
    ):
        assert told(counter.call(body)) == "replayed"
    assert counter.effects == 1


def test_a_default_is_no_part_of_what_came(counter: Counter) -> None:
    counter.call({"n": 1, "idempotency_key": "k"})
    assert told(counter.call({"n": 1, "d": 3, "idempotency_key": "k"})) == REUSED


def test_a_code_is_no_part_of_the_input(shop: Shop) -> None:
    counter = Counter(shop, danger="always")
    prompt = counter.call({"n": 1, "idempotency_key": "k"}).json()
    found = counter.call({"n": 1, "idempotency_key": "k", "confirm_token": prompt["confirm_token"]})
    assert told(found) == "ran"
    assert told(counter.call({"n": 1, "idempotency_key": "k", "confirm_token": "another"})) == "replayed"
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "replayed"


# --- What is stored -------------------------------------------------------------------------------------------------------------------


def test_a_stored_answer_is_answered_though_the_object_changed(counter: Counter) -> None:
    first = counter.call({"n": 1, "idempotency_key": "k"})
    Setting.objects.all().delete()
    again = counter.call({"n": 1, "idempotency_key": "k"})
    assert (again.content, counter.effects, counter.asked) == (first.content, 0, 1)


def test_a_replay_is_marked_charged_and_carries_its_own_request_id(counter: Counter) -> None:
    first = counter.call({"n": 1, "idempotency_key": "k"}, headers={"X-Request-ID": "first"})
    again = counter.call({"n": 1, "idempotency_key": "k"}, headers={"X-Request-ID": "second"})
    assert "Idempotent-Replayed" not in first.headers
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (first.headers["X-Request-ID"], again.headers["X-Request-ID"]) == ("first", "second")
    assert [remaining(answer) for answer in (first, again)] == [599, 598]
    assert again["Content-Type"] == "application/json"
    assert outcomes() == [("ok", None)]


def remaining(answer: Any) -> int:
    return int(answer.headers["RateLimit"].partition(";r=")[2].partition(";")[0])


def test_a_replay_costs_what_the_call_costs(shop: Shop) -> None:
    counter = Counter(shop, cost=lambda given: 7)
    counter.call({"idempotency_key": "k"})
    assert remaining(counter.call({"idempotency_key": "k"})) == 600 - 14


def test_a_declared_refusal_is_stored_and_replayed_as_it_was(counter: Counter) -> None:
    counter.fail = ToolError("sold_out", "Nothing is left: é.", left=0, when="today")
    first = counter.call({"n": 1, "idempotency_key": "k"}, headers={"X-Request-ID": "first"})
    counter.fail = None
    again = counter.call({"n": 1, "idempotency_key": "k"}, headers={"X-Request-ID": "second"})
    assert (first.status_code, again.status_code) == (409, 409)
    assert (again.content, told(again)) == (first.content, "replayed")
    assert again["Content-Type"] == "application/problem+json"
    assert (json.loads(again.content)["request_id"], again.headers["X-Request-ID"]) == ("first", "second")
    assert (counter.asked, counter.effects) == (1, 0)
    assert outcomes() == [("error", "sold_out")]


def test_what_was_stored_outlives_the_declaration(shop: Shop) -> None:
    counter = Counter(shop)
    counter.fail = ToolError("sold_out", "Nothing is left.")
    first = counter.call({"n": 1, "idempotency_key": "k"})
    changed = make_module()
    changed.problems.clear()
    tool = changed.tool("shop.run", scope=SCOPE, permission=PERMISSION, input_schema=NUMBER, danger="always")(
        lambda given, ctx: {"other": True}
    )
    tool.preview(harmless)
    with registry.using(changed):
        again = counter.call({"n": 1, "idempotency_key": "k"})
    assert (again.status_code, again.content, told(again)) == (409, first.content, "replayed")


class Leaving(SystemExit):
    pass


ODD_MESSAGE: Any = 7


@pytest.mark.parametrize(
    "error", [RuntimeError("x"), Leaving(), ToolError("undeclared", "x"), ToolError("sold_out", ODD_MESSAGE)]
)
def test_an_undeclared_end_leaves_no_record_and_a_repeat_runs(counter: Counter, error: BaseException) -> None:
    counter.fail = error
    found = counter.call({"n": 1, "idempotency_key": "k"})
    assert (found.status_code, found.json()["retry"]) == (500, "same_key")
    assert (IdempotencyRecord.objects.count(), counter.effects) == (0, 0)
    counter.fail = None
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"
    assert outcomes() == [("error", "internal_error"), ("ok", None)]


@pytest.mark.parametrize("code", ["unavailable", "maintenance", "internal_error"])
def test_a_declared_refusal_that_asks_for_a_repeat_is_not_stored(counter: Counter, code: str) -> None:
    counter.fail = ToolError(code, "Come again.")
    found = counter.call({"n": 1, "idempotency_key": "k"})
    assert (found.json()["code"], IdempotencyRecord.objects.count()) == (code, 0)
    counter.fail = None
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


def test_a_stored_refusal_never_advises_the_same_key(counter: Counter) -> None:
    counter.fail = ToolError("conflict", "Somebody else has it.", reason="theirs")
    first = counter.call({"n": 1, "idempotency_key": "k"})
    assert (first.status_code, first.json()["retry"]) == (409, "new_key")
    assert counter.call({"n": 1, "idempotency_key": "k"}).content == first.content
    assert counter.call({"n": 1}).json()["retry"] == "same_key"


class Told(BaseException):
    """What a server throws into a thread that it ends."""


def test_a_thread_that_is_ended_lets_go_of_its_claim(counter: Counter) -> None:
    counter.fail = Told()
    with pytest.raises(Told):
        counter.call({"n": 1, "idempotency_key": "k"})
    assert not lifesigns._renewer._running
    counter.fail = None
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"
    assert counter.effects == 1


def test_a_renewer_that_can_not_start_leaves_the_key_free(counter: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(work: Work) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(lifesigns, "keep", fail)
        assert counter.call({"n": 1, "idempotency_key": "k"}).status_code == 500
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


def test_a_prompt_keeps_the_hash_and_no_answer(shop: Shop) -> None:
    counter = Counter(shop, danger="always")
    for number in (1, 2):
        assert counter.call({"n": 1, "idempotency_key": "k"}).json()["status"] == "confirmation_required"
        row = IdempotencyRecord.objects.get()
        assert (row.state, row.attempt, row.body, row.status, row.finished_at) == ("waiting", number, None, None, None)
    assert told(counter.call({"n": 2, "idempotency_key": "k"})) == REUSED
    assert Confirmation.objects.filter(state="waiting").count() == 2


def test_a_refused_code_keeps_the_hash_and_no_answer(shop: Shop) -> None:
    counter = Counter(shop, danger="always")
    for _ in range(2):
        found = counter.call({"n": 1, "idempotency_key": "k", "confirm_token": "nobody's"})
        assert found.json()["reason"] == "invalid"
        assert IdempotencyRecord.objects.get().state == "waiting"
    prompt = counter.call({"n": 1, "idempotency_key": "k"}).json()
    found = counter.call({"n": 1, "idempotency_key": "k", "confirm_token": prompt["confirm_token"]})
    assert told(found) == "ran"


@pytest.mark.parametrize("body", [{"n": 1, "odd": 1}, {"n": 1, "idempotency_key": "k", "d": "x"}])
def test_an_invalid_call_claims_nothing(counter: Counter, body: dict[str, Any]) -> None:
    assert counter.call({"idempotency_key": "k", **body}).status_code == 422
    assert not IdempotencyRecord.objects.exists()
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


def test_a_refusal_of_the_preview_or_the_danger_rule_is_not_stored(shop: Shop) -> None:
    refuse = [True]

    def rule(given: Any, ctx: Any) -> bool:
        if refuse[0]:
            raise ToolError("sold_out", "Nothing is left.")
        return False

    counter = Counter(shop, danger=rule)
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "sold_out"
    assert IdempotencyRecord.objects.get().state == "waiting"
    refuse[0] = False
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == "ran"


@pytest.mark.parametrize("step", ["settle", "write", "after"])
def test_a_fault_of_the_gate_itself_undoes_the_effect(
    counter: Counter, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """G28: the record that can't be finished, the entry that can't be written: no effect, and the key is good again."""
    where: dict[str, tuple[Any, str]] = {
        "settle": (idempotency, "_finish"),
        "write": (activity, "write"),
        "after": (lifesigns, "let_go"),
    }
    target, name = where[step]
    with monkeypatch.context() as patched:
        patched.setattr(target, name, _broken)
        found = counter.call({"n": 1, "idempotency_key": "k"})
    lifesigns._renewer._running.clear()
    again = counter.call({"n": 1, "idempotency_key": "k"})
    if step == "after":
        assert (told(found), told(again)) == ("ran", "replayed")
    else:
        assert (found.status_code, told(again)) == (500, "ran")
    assert (counter.effects, outcomes().count(("ok", None))) == (1, 1)


def _broken(*_: object, **__: object) -> Any:
    raise RuntimeError("broken")


# --- Settling -------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("happened", "answer"), [(True, "replayed"), (False, "ran")])
def test_the_operators_word_ends_the_unknown(shop: Shop, happened: bool, answer: str) -> None:
    counter = Counter(shop, reach="external")
    record = counter.record(state=State.UNKNOWN, external=True)
    assert records.settle(record, happened=happened, actor=factories.SYSTEM)
    assert not records.settle(record, happened=not happened, actor=factories.SYSTEM)
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == answer
    entry = Entry.objects.get(action="api.idempotency_settled")
    assert (entry.metadata["happened"], entry.target) == (happened, "shop.run")


def test_only_the_unknown_can_be_settled(counter: Counter) -> None:
    for number, state in enumerate(set(State) - {State.UNKNOWN}):
        record = counter.record(key=str(number), state=state)
        for happened in (True, False):
            assert not records.settle(record, happened=happened, actor=factories.SYSTEM)
    assert IdempotencyRecord.objects.count() == 3
    assert not Entry.objects.filter(action="api.idempotency_settled").exists()


# --- An overtaken attempt -------------------------------------------------------------------------------------------------------------


def test_an_overtaken_attempt_takes_its_effect_back(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        put("a")
        IdempotencyRecord.objects.update(attempt=2)
        return {}

    machine = shop.write(handler)
    found = machine.call("shop.run", {"idempotency_key": "k"})
    assert (told(found), found.headers["Retry-After"], stored()) == (RUNNING, "2", [])
    assert outcomes() == [("error", RUNNING)]


def test_an_attempt_that_was_overtaken_before_its_transaction_does_not_run(
    counter: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtake(work: Work) -> None:
        IdempotencyRecord.objects.update(attempt=2)

    monkeypatch.setattr(lifesigns, "keep", overtake)
    assert told(counter.call({"n": 1, "idempotency_key": "k"})) == RUNNING
    assert counter.asked == 0
    row = IdempotencyRecord.objects.get()
    assert (row.state, row.attempt) == ("running", 2)


@pytest.mark.parametrize("status", [200, 409, 500])
def test_a_late_end_of_an_overtaken_attempt_leaves_the_record_to_the_later_one(counter: Counter, status: int) -> None:
    record = counter.record(state=State.RUNNING, attempt=2)
    late = idempotency.Claim(uuid=record.uuid, attempt=1, external=False)
    if status == 200:
        with pytest.raises(Problem) as refused:
            idempotency.finish(late, Answer(result={}, body=b"{}"))
        assert refused.value.code == RUNNING
    else:
        code = {409: "conflict", 500: "internal_error"}[status]
        idempotency.release(late, Refusal(problem=Problem(code, "x"), body=b"{}"), ran=False)
    record.refresh_from_db()
    assert (record.state, record.attempt) == ("running", 2)


def test_the_entry_of_a_settled_record_says_from_where(transactional_db: None) -> None:
    record = factories.make_record(state="unknown")
    assert records.settle(record, happened=True, actor=factories.SYSTEM, ip="192.0.2.7")
    assert Entry.objects.get(action="api.idempotency_settled").ip == "192.0.2.7"


def test_a_run_that_still_lives_is_not_forgotten_however_old_its_record_is(transactional_db: None) -> None:
    old = timezone.now() - timedelta(hours=100)
    living, _ = (factories.make_record(state="running") for _ in range(2))
    IdempotencyRecord.objects.update(created_at=old)
    lifesigns.begin(Work(kind="call", uuid=living.uuid, attempt=living.attempt))
    assert records.forget_dead(keep_hours=72) == 1
    assert list(IdempotencyRecord.objects.values_list("pk", flat=True)) == [living.pk]


def test_a_refusal_after_a_spent_code_does_not_ask_for_a_repeat(shop: Shop) -> None:
    def handler(given: Any, ctx: Any) -> Any:
        raise ToolError("conflict", "Somebody was faster.", reason="serialization")

    machine = shop.write(handler, danger="always")
    code = machine.call("shop.run").json()["confirm_token"]
    answer = machine.call("shop.run", {"confirm_token": code})
    assert (answer.status_code, answer.json()["retry"]) == (409, "never")
