"""Writes that a rollback does not undo (RF-15, ID-3): run once at most, and never called unhappened when they may have happened."""

import re
from typing import Any

import pytest
from django.db import OperationalError, connection

from apps.activity import log as activity
from apps.activity.models import Entry
from apps.api import ToolError, lifesigns, records, registry
from apps.api.lifesigns import Work
from apps.api.models import Confirmation, IdempotencyRecord
from tests.api import factories
from tests.api.factories import Machine
from tests.api.shop import Shop

pytestmark = pytest.mark.sqlite

State = IdempotencyRecord.State


class Post:
    """`shop.run` sends a letter, which nothing takes back."""

    def __init__(self, shop: Shop, **declared: Any) -> None:
        self.sent = 0
        self.fail: BaseException | None = None
        self.seen: list[Any] = []
        self.machine: Machine = shop.write(self.handler, reach="external", **declared)

    def handler(self, given: Any, ctx: Any) -> Any:
        self.seen.append((connection.in_atomic_block, ctx.confirmation_uuid, _states(), _codes()))
        self.sent += 1
        ctx.log("shop.letter_sent", "letter", str(self.sent))
        if self.fail is not None:
            raise self.fail
        return {"sent": self.sent}

    def call(self, **body: Any) -> Any:
        return self.machine.call("shop.run", body)


def _states() -> list[str]:
    return list(IdempotencyRecord.objects.values_list("state", flat=True))


def _codes() -> list[str]:
    return list(Confirmation.objects.values_list("state", flat=True))


def entries() -> list[tuple[str, str | None]]:
    found = Entry.objects.filter(action="api.request").order_by("created_at")
    return [(row.metadata["outcome"], row.metadata["code"]) for row in found]


@pytest.fixture
def post(shop: Shop) -> Post:
    return Post(shop)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """The database that is gone when the letter was sent: nothing of what follows can be written."""
    written = activity.write

    def write(**fields: Any) -> Any:
        if fields["action"] == "api.request" and fields["metadata"]["outcome"] == "ok":
            raise OperationalError("the connection is closed")
        return written(**fields)

    monkeypatch.setattr(activity, "write", write)


@pytest.mark.parametrize("danger", [None, "always"])
def test_claim_and_spending_are_committed_before_the_handler_and_it_runs_in_no_transaction(
    shop: Shop, danger: Any
) -> None:
    post = Post(shop, danger=danger)
    body: dict[str, Any] = {"idempotency_key": "k"}
    if danger:
        body["confirm_token"] = post.call(**body).json()["confirm_token"]
    assert post.call(**body).json() == {"sent": 1}
    inside, confirmation, records, codes = post.seen[0]
    assert (inside, records, codes) == (False, ["running"], ["used"] if danger else [])
    assert bool(confirmation) is bool(danger)
    assert (_states(), entries()[-1]) == (["done"], ("ok", None))
    assert Entry.objects.filter(action="shop.letter_sent").count() == 1
    again = post.call(**body)
    assert (again.json(), again.headers["Idempotent-Replayed"], post.sent) == ({"sent": 1}, "true", 1)


def test_every_external_write_has_a_record_and_no_two_calls_share_one(post: Post) -> None:
    assert [post.call().json()["sent"] for _ in range(2)] == [1, 2]
    rows = IdempotencyRecord.objects.all()
    assert [row.state for row in rows] == ["done", "done"]
    assert all(re.fullmatch(r"\x1f[0-9a-f]{32}", row.key) for row in rows)


def test_a_prompt_or_a_refused_code_leaves_no_record_of_a_key_of_our_own(shop: Shop) -> None:
    post = Post(shop, danger="always")
    assert post.call().json()["status"] == "confirmation_required"
    assert post.call(confirm_token="nobody's").json()["reason"] == "invalid"
    assert (post.sent, IdempotencyRecord.objects.count()) == (0, 0)


@pytest.mark.parametrize("code", ["sold_out", "unavailable", "internal_error", "conflict"])
def test_a_declared_refusal_is_stored_and_replayed(post: Post, code: str) -> None:
    post.fail = ToolError(code, "Refused.")
    first = post.call(idempotency_key="k")
    again = post.call(idempotency_key="k")
    assert first.json()["code"] == code
    assert first.json()["retry"] in ("never", "new_key")
    assert (again.status_code, again.content, post.sent) == (first.status_code, first.content, 1)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (_states(), entries()) == (["done"], [("error", code)])
    assert not Entry.objects.filter(action="shop.letter_sent").exists()


def test_a_declared_refusal_has_spent_the_code(shop: Shop) -> None:
    post = Post(shop, danger="always")
    code = post.call().json()["confirm_token"]
    post.fail = ToolError("sold_out", "Refused.")
    assert post.call(confirm_token=code).json()["code"] == "sold_out"
    post.fail = None
    assert post.call(confirm_token=code).json()["reason"] == "used"
    assert post.sent == 1


ODD_ANSWERS = [RuntimeError("x"), SystemExit(1), ToolError("undeclared", "x"), OperationalError("gone"), TimeoutError()]


@pytest.mark.parametrize("error", ODD_ANSWERS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("key", ["k", None])
def test_an_undeclared_end_is_unknown_for_ever_and_never_advised_to_be_repeated(
    post: Post, error: BaseException, key: str | None
) -> None:
    post.fail = error
    body = {"idempotency_key": key} if key else {}
    first = post.call(**body)
    assert first.status_code in (500, 503)
    assert (first.json()["retry"], "Retry-After" in first.headers) == ("never", False)
    assert "may have happened" in first.json()["detail"]
    assert (_states(), post.sent) == (["unknown"], 1)
    assert [outcome for outcome, _ in entries()] == ["error"]
    if key:
        again = post.call(**body)
        assert (again.status_code, again.json()["code"]) == (409, "idempotency_outcome_unknown")
        assert (again.json()["retry"], post.sent) == ("never", 1)


def test_a_call_that_was_sent_and_could_not_be_recorded_is_unknown(post: Post, lost: None) -> None:
    first = post.call(idempotency_key="k")
    assert (first.status_code, first.json()["retry"]) == (503, "never")
    assert "may have happened" in first.json()["detail"]
    assert (_states(), post.sent, entries()) == (["unknown"], 1, [("error", "unavailable")])
    assert post.call(idempotency_key="k").json()["code"] == "idempotency_outcome_unknown"
    assert post.sent == 1


def test_an_odd_answer_or_log_line_is_unknown(shop: Shop) -> None:
    def badly(given: Any, ctx: Any) -> Any:
        if given["how"] == "log":
            ctx.log("api.request", "x", "x")
            return {}
        return "no object"

    machine = shop.write(
        badly, reach="external", input_schema={"type": "object", "properties": {"how": {"type": "string"}}}
    )
    for how in ("log", "answer"):
        found = machine.call("shop.run", {"how": how, "idempotency_key": how})
        assert (found.status_code, found.json()["retry"]) == (500, "never")
    assert _states() == ["unknown", "unknown"]


def test_a_fault_before_the_handler_leaves_no_record_and_may_be_repeated(shop: Shop) -> None:
    broken = [True]

    def rule(given: Any, ctx: Any) -> bool:
        if broken[0]:
            raise RuntimeError("broken")
        return False

    post = Post(shop, danger=rule)
    first = post.call(idempotency_key="k")
    assert (first.status_code, first.json()["retry"], _states()) == (500, "same_key", [])
    broken[0] = False
    assert post.call(idempotency_key="k").json() == {"sent": 1}


@pytest.mark.parametrize("word", ["unknown", "gone"])
def test_a_finish_that_finds_its_attempt_gone_is_unknown(
    post: Post, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overtake(given: Any, ctx: Any) -> Any:
        post.sent += 1
        mine = IdempotencyRecord.objects.all()
        mine.update(state=State.UNKNOWN) if word == "unknown" else mine.delete()
        return {"sent": True}

    monkeypatch.setattr(registry.current().find("admin", "shop.run"), "handler", overtake)
    found = post.call(idempotency_key="k")
    assert (found.status_code, found.json()["code"]) == (409, "idempotency_outcome_unknown")
    assert (_states(), entries()) == (["unknown"] if word == "unknown" else [], [("error", found.json()["code"])])


def test_a_lost_call_is_shown_to_the_operator_and_one_that_runs_is_not(post: Post) -> None:
    rows = [factories.make_record(state=State.RUNNING, external=external) for external in (True, True, False)]
    lifesigns.begin(Work(kind="call", uuid=rows[0].uuid, attempt=1))
    assert records.mark_lost() == 1
    for row in rows:
        row.refresh_from_db()
    assert [row.state for row in rows] == ["running", "unknown", "running"]
    assert records.mark_lost() == 0
