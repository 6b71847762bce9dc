"""Calls, repeats, redeems and faults at every step in any order: effects, `ok` entries and stored answers are always the same number."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import OperationalError
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from apps.activity import log as activity
from apps.activity.models import Entry
from apps.api import ToolError, confirmations, idempotency, lifesigns, records
from apps.api.models import Confirmation, IdempotencyRecord, KeyFamily
from tests.api.shop import Shop, harmless

pytestmark = pytest.mark.sqlite


class Crash(BaseException):
    """Ends the call's thread as a kill would: nothing of the gate runs after it but what lets go."""


# Where a call can end, and how: the name of the function that ends it, before or after it did its work.
PLACES: dict[str, tuple[Any, str]] = {
    "claim": (idempotency, "claim"),
    "keep": (lifesigns, "keep"),
    "current": (idempotency, "must_be_current"),
    "issue": (confirmations, "issue"),
    "spend": (confirmations, "spend"),
    "finish": (idempotency, "finish"),
    "entry": (activity, "write"),
    "release": (idempotency, "release"),
    "let go": (lifesigns, "let_go"),
}
FAULTS: dict[str, Callable[[], BaseException]] = {
    "crash": Crash,
    "error": lambda: RuntimeError("broken"),
    "gone": lambda: OperationalError("the connection is closed"),
    "leave": lambda: SystemExit(1),
}

STEP = st.fixed_dictionaries(
    {
        "key": st.sampled_from(["a", "b", None]),
        "n": st.sampled_from([1, 1, 1, 2]),
        "code": st.sampled_from(["none", "last", "last", "first", "wrong"]),
        "handler": st.sampled_from(["ok", "ok", "ok", "refuse", "break", "crash"]),
        "place": st.sampled_from([None, None, *PLACES]),
        "fault": st.sampled_from(sorted(FAULTS)),
        "late": st.booleans(),
    }
)


# Every call writes to a database: shrinking a failure would take minutes, and eight steps can be read as they are.
UNSHRUNK = settings(
    max_examples=25,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class World:
    """`shop.run` adds a row, dangerous for an even `n`."""

    def __init__(self, shop: Shop, **declared: Any) -> None:
        self.end = "ok"
        self.codes: list[str] = []
        fields = {"type": "object", "properties": {"n": {"type": "integer"}}}
        self.machine = shop.write(
            self.handler, shown=harmless, danger=lambda given, ctx: given["n"] == 1, input_schema=fields, **declared
        )
        self.ran = 0

    def handler(self, given: Any, ctx: Any) -> Any:
        KeyFamily.objects.create()
        self.ran += 1
        match self.end:
            case "refuse":
                raise ToolError("sold_out", "Nothing is left.")
            case "break":
                raise RuntimeError("broken")
            case "crash":
                raise Crash
        return {"ran": self.ran}

    def clear(self) -> None:
        for model in (IdempotencyRecord, Confirmation):
            model.objects.all().delete()
        # Entries stay: nothing may delete them. What follows is counted from here.
        self.families, self.entries = KeyFamily.objects.count(), ok_entries()
        self.codes.clear()
        self.ran = 0

    def step(self, step: dict[str, Any]) -> Any:
        self.end = step["handler"]
        body: dict[str, Any] = {"n": step["n"]}
        if step["key"] is not None:
            body["idempotency_key"] = step["key"]
        if step["code"] == "wrong":
            body["confirm_token"] = "nobody's"
        elif step["code"] != "none" and self.codes:
            body["confirm_token"] = self.codes[0 if step["code"] == "first" else -1]
        with faulty(step):
            try:
                answer = self.machine.call("shop.run", body)
            except (Crash, SystemExit):
                answer = None
        # What a killed process leaves behind is not renewed any more.
        lifesigns._renewer._running.clear()
        lifesigns._renewer._seen.clear()
        if answer is not None and answer.status_code == 200 and "confirm_token" in answer.json():
            self.codes.append(answer.json()["confirm_token"])
        return answer

    @property
    def effects(self) -> int:
        return KeyFamily.objects.count() - self.families


def ok_entries() -> int:
    return Entry.objects.filter(action="api.request", metadata__outcome="ok").count()


@contextmanager
def faulty(step: dict[str, Any]) -> Iterator[None]:
    """While open, one step of the gate ends with the fault, before its work or after it."""
    if step["place"] is None:
        yield
        return
    target, name = PLACES[step["place"]]

    def fail(*args: Any, **kwargs: Any) -> Any:
        if step["late"]:
            function(*args, **kwargs)
        raise FAULTS[step["fault"]]()

    function = getattr(target, name)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(target, name, fail)
        yield


@pytest.fixture
def lenient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dead attempt is dead at once, and nobody guesses too often."""
    monkeypatch.setattr(lifesigns, "is_alive", lambda work: False)
    monkeypatch.setattr(confirmations, "count_wrong", lambda call, tool: None)


@UNSHRUNK
@given(steps=st.lists(STEP, min_size=2, max_size=8))
def test_effects_entries_and_stored_answers_are_one_number(world: World, steps: list[dict[str, Any]]) -> None:
    world.clear()
    without_key = answered = 0
    stored: dict[str, bytes] = {}
    for step in steps:
        before = world.effects
        answer = world.step(step)
        done = {row.key: bytes(row.body or b"") for row in IdempotencyRecord.objects.filter(state="done")}
        assert done.items() >= stored.items(), "a stored answer changed"
        stored = done
        happened = world.effects - before
        assert happened in (0, 1)
        if step["key"] is None:
            without_key += happened
        if answer is None:
            continue
        if answer.headers.get("Idempotent-Replayed"):
            assert (happened, answer.content) == (0, stored[step["key"]])
        elif answer.status_code == 200 and "ran" in answer.json():
            answered += 1
            assert happened == 1
        else:
            # A refusal, a prompt: nothing happened. What was not told was not done.
            assert happened == 0
    with_200 = IdempotencyRecord.objects.filter(state="done", status=200).count()
    assert world.effects == with_200 + without_key == ok_entries() - world.entries
    assert answered <= world.effects
    used = Confirmation.objects.filter(state="used").count()
    assert used <= world.ran
    # Nothing is stuck: each key is answered by a plain repeat, or runs.
    for row in IdempotencyRecord.objects.exclude(state="done"):
        assert row.state in ("running", "waiting")
    plain = {"code": "none", "handler": "ok", "place": None, "fault": "error", "late": False}
    for key in ("a", "b"):
        codes = [world.step({**plain, "key": key, "n": n}) for n in (1, 2)]
        assert any(code.status_code in (200, 409) for code in codes)
        assert not any(code.status_code >= 500 for code in codes)


@pytest.fixture
def world(shop: Shop, lenient: None) -> World:
    return World(shop)


@UNSHRUNK
@given(steps=st.lists(STEP, min_size=2, max_size=8))
def test_an_external_effect_is_never_repeated_with_its_key(outside: World, steps: list[dict[str, Any]]) -> None:
    outside.clear()
    ran: dict[str, int] = {"a": 0, "b": 0}
    for step in steps:
        before, known = outside.ran, set(IdempotencyRecord.objects.values_list("key", flat=True))
        answer = outside.step(step)
        happened = outside.ran - before
        assert happened in (0, 1)
        if step["key"] is not None:
            ran[step["key"]] += happened
        if happened and answer is not None and answer.status_code != 200:
            refused = answer.json()["code"] == "sold_out"
            assert (
                refused or answer.json()["retry"] == "never" or answer.json()["code"] == "idempotency_outcome_unknown"
            )
        if happened:
            assert set(IdempotencyRecord.objects.values_list("key", flat=True)) >= known
    assert all(times <= 1 for times in ran.values()), ran
    records.mark_lost()
    assert not IdempotencyRecord.objects.filter(state="running").exists()
    assert IdempotencyRecord.objects.filter(state__in=("done", "unknown")).count() >= outside.ran


@pytest.fixture
def outside(shop: Shop, lenient: None) -> World:
    return World(shop, reach="external")
