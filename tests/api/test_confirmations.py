"""Codes (DG-1 to DG-4): bound to caller, tool, input and values, used once, counted, and kept nowhere."""

import json
import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.apps import apps
from django.db import connection
from django.utils import timezone

from apps.activity import log as activity
from apps.activity.models import Entry
from apps.api import Module, ToolError, confirmations, fingerprint, keys, preview, ratelimit, row
from apps.api.models import Confirmation, IdempotencyRecord, Setting
from apps.api.problems import Problem
from apps.api.ratelimit import Bucket
from tests.api import factories
from tests.api.factories import Machine
from tests.api.shop import PERMISSION, SCOPE, Shop, harmless, make_module, put, stored

pytestmark = pytest.mark.sqlite

NAMED = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "to": {}, "extra": {"type": "integer", "default": 1}},
}


class Prices:
    """`shop.run` sets the setting `price`, which its preview shows; `shop.other` is its double."""

    def __init__(self, shop: Shop) -> None:
        self.fail: BaseException | None = None
        self.ran = 0
        module = make_module()
        for name in ("shop.run", "shop.other"):
            tool = module.tool(name, scope=SCOPE, permission=PERMISSION, input_schema=NAMED, danger="always")(self.set)
            tool.preview(self.show)
        put("price", 1)
        self.machine = shop.open(module)

    def set(self, given: Any, ctx: Any) -> Any:
        self.ran += 1
        put("price", given.get("to", 2))
        if self.fail is not None:
            raise self.fail
        return {"ran": self.ran, "confirmation": ctx.confirmation_uuid}

    def show(self, given: Any, ctx: Any) -> Any:
        now = dict(Setting.objects.filter(name="price").values_list("name", "value"))
        shown = preview("Set.", [row("price", "price", before=now.get("price"), after=given.get("to", 2))])
        return shown, fingerprint(["price"], now)

    def call(self, machine: Machine | None = None, *, tool: str = "shop.run", **body: Any) -> Any:
        return (machine or self.machine).call(tool, body)

    def code(self, **body: Any) -> str:
        return str(self.call(**body).json()["confirm_token"])


@pytest.fixture
def prices(shop: Shop) -> Prices:
    return Prices(shop)


def price() -> Any:
    return Setting.objects.get(name="price").value


def states() -> list[str]:
    return list(Confirmation.objects.order_by("created_at").values_list("state", flat=True))


def entries() -> list[tuple[str, str | None, str | None]]:
    found = Entry.objects.filter(action="api.request").order_by("created_at")
    return [(one.metadata["outcome"], one.metadata["code"], one.metadata["confirmation_uuid"]) for one in found]


def reason(answer: Any) -> str:
    assert (answer.status_code, answer.json()["code"], answer.json()["retry"]) == (
        409,
        "confirm_token_invalid",
        "never",
    )
    return str(answer.json()["reason"])


# --- The order of the reasons ---------------------------------------------------------------------------------------------------------


def test_a_right_code_runs_once_with_its_confirmation(prices: Prices) -> None:
    prompt = prices.call().json()
    found = prices.call(confirm_token=prompt["confirm_token"])
    assert found.json() == {"ran": 1, "confirmation": prompt["confirmation_id"]}
    assert reason(prices.call(confirm_token=prompt["confirm_token"])) == "used"
    assert (prices.ran, price(), states()) == (1, 2, ["used"])
    uuid = prompt["confirmation_id"]
    assert entries() == [
        ("confirmation_required", None, uuid),
        ("ok", None, uuid),
        ("error", "confirm_token_invalid", uuid),
    ]


@pytest.mark.parametrize("state", ["waiting", "used", "rejected", "expired"])
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("change", ["nothing", "tool", "input", "caller", "code"])
def test_the_first_reason_is_the_answer(prices: Prices, state: str, late: bool, change: str) -> None:
    code = prices.code(name="a")
    Confirmation.objects.update(state=state)
    if late:
        Confirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    machine = factories.make_machine(scopes=[SCOPE]) if change == "caller" else None
    found = prices.call(
        machine,
        tool="shop.other" if change == "tool" else "shop.run",
        name="b" if change == "input" else "a",
        confirm_token=code[:-1] + ("0" if code[-1] != "0" else "1") if change == "code" else code,
    )
    if change in ("caller", "code"):
        assert reason(found) == "invalid"
    elif change in ("tool", "input"):
        assert reason(found) == "other_arguments"
    elif state != "waiting":
        assert reason(found) == state
    elif late:
        assert reason(found) == "expired"
    else:
        assert found.status_code == 200
    ran = change == "nothing" and state == "waiting" and not late
    assert (prices.ran, states()) == (int(ran), ["used" if ran else state])


def test_the_answer_for_another_callers_code_is_the_one_for_nobodys(prices: Prices) -> None:
    code = prices.code()
    other = factories.make_machine(scopes=[SCOPE])
    ids = {"X-Request-ID": "same"}
    answers = [
        other.call("shop.run", {"confirm_token": text}, headers=ids) for text in (code, "tc_" + "x" * 32, "x", "é")
    ]
    assert len({answer.content for answer in answers}) == 1
    headers = [{name: text for name, text in answer.headers.items() if name != "RateLimit"} for answer in answers]
    assert all(one == headers[0] for one in headers)
    assert [uuid for _, _, uuid in entries()[1:]] == [None] * 4
    assert prices.call(confirm_token=code).status_code == 200


def test_an_explicit_default_is_another_input(prices: Prices) -> None:
    code = prices.code(name="a")
    assert reason(prices.call(name="a", extra=1, confirm_token=code)) == "other_arguments"
    assert prices.call(name="a", confirm_token=code).status_code == 200


def test_the_same_input_in_another_form_redeems(prices: Prices) -> None:
    code = prices.machine.call("shop.run", '{"name": "a", "to": {"x": 1, "y": 2}}').json()["confirm_token"]
    found = prices.machine.call(
        "shop.run", json.dumps({"confirm_token": code, "to": {"y": 2.0, "x": 1}, "name": "a", "idempotency_key": "k"})
    )
    assert found.status_code == 200


def test_a_code_holds_for_the_family(prices: Prices) -> None:
    code = prices.code()
    assert prices.machine.key is not None
    _, text = keys.rotate(
        prices.machine.key, grace=timedelta(hours=1), by=factories.make_owner(superuser=True), actor=factories.SYSTEM
    )
    assert prices.call(Machine(text=text), confirm_token=code).status_code == 200


def test_every_prompt_has_a_code_of_its_own(prices: Prices) -> None:
    codes = [prices.code() for _ in range(3)]
    assert len(set(codes)) == 3
    assert prices.call(confirm_token=codes[1]).status_code == 200


# --- Changed values -------------------------------------------------------------------------------------------------------------------


def test_changed_values_end_the_row_and_ask_anew(prices: Prices) -> None:
    first = prices.call(idempotency_key="k").json()
    put("price", 7)
    second = prices.call(idempotency_key="k", confirm_token=first["confirm_token"]).json()
    assert (second["status"], second["reason"]) == ("confirmation_required", "changed")
    assert second["preview"]["rows"][0]["before"] == 7
    assert (states(), price(), prices.ran) == (["expired", "waiting"], 7, 0)
    assert [uuid for _, _, uuid in entries()] == [first["confirmation_id"], second["confirmation_id"]]
    assert IdempotencyRecord.objects.get().state == "waiting"
    assert reason(prices.call(confirm_token=first["confirm_token"])) == "expired"
    found = prices.call(idempotency_key="k", confirm_token=second["confirm_token"])
    assert (found.status_code, price()) == (200, 2)


def test_values_that_changed_back_are_the_same(prices: Prices) -> None:
    code = prices.code()
    put("price", 7)
    put("price", 1)
    assert prices.call(confirm_token=code).status_code == 200


def test_two_that_find_the_values_changed_get_one_new_prompt(prices: Prices) -> None:
    """The row's end is one conditional update: the second finds it spent."""
    prices.code()
    held = Confirmation.objects.get()
    confirmations.expire(held)
    for end in (confirmations.expire, confirmations.spend):
        with pytest.raises(Problem) as refused:
            end(held)
        assert refused.value.context == {"reason": "expired"}


def test_a_row_is_spent_once_whoever_saw_it_waiting(prices: Prices) -> None:
    """Without REPEATABLE READ the conditional update alone decides."""
    prices.code()
    seen = [Confirmation.objects.get() for _ in range(2)]
    confirmations.spend(seen[0])
    with pytest.raises(Problem) as refused:
        confirmations.spend(seen[1])
    assert refused.value.context == {"reason": "used"}


# --- What spends a code ---------------------------------------------------------------------------------------------------------------


def test_a_refusal_by_the_handler_has_spent_the_code(prices: Prices) -> None:
    code = prices.code()
    prices.fail = ToolError("sold_out", "Nothing is left.")
    assert prices.call(confirm_token=code).json()["code"] == "sold_out"
    prices.fail = None
    assert reason(prices.call(confirm_token=code)) == "used"
    assert (price(), states()) == (1, ["used"])


@pytest.mark.parametrize("error", [RuntimeError("x"), SystemExit(), ToolError("undeclared", "x")], ids=repr)
def test_an_undeclared_end_leaves_the_code_good(prices: Prices, error: BaseException) -> None:
    code = prices.code()
    prices.fail = error
    assert prices.call(confirm_token=code, idempotency_key="k").status_code == 500
    assert (states(), price()) == (["waiting"], 1)
    prices.fail = None
    assert prices.call(confirm_token=code, idempotency_key="k").status_code == 200


def test_an_entry_that_can_not_be_written_leaves_the_code_good(prices: Prices, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(**_: Any) -> Any:
        raise RuntimeError("broken")

    code = prices.code()
    with monkeypatch.context() as patched:
        patched.setattr(activity, "write", fail)
        assert prices.call(confirm_token=code).status_code == 500
    assert (states(), price()) == (["waiting"], 1)
    assert prices.call(confirm_token=code).status_code == 200


# --- Wrong codes ----------------------------------------------------------------------------------------------------------------------


def test_the_eleventh_wrong_code_is_429_and_a_right_one_still_works(prices: Prices) -> None:
    code = prices.code()
    for number in range(10):
        assert reason(prices.call(confirm_token=f"wrong {number}", idempotency_key=f"k{number}")) == "invalid"
    for _ in range(2):
        refused = prices.call(confirm_token="wrong", idempotency_key="k")
        assert (refused.status_code, refused.json()["code"], refused.json()["retry"]) == (429, "rate_limited", "later")
        assert 0 < int(refused.headers["Retry-After"]) <= 601
    assert prices.call(confirm_token=code).status_code == 200
    other = factories.make_machine(scopes=[SCOPE])
    assert reason(prices.call(other, confirm_token="wrong")) == "invalid"


def test_only_a_code_that_is_nobodys_counts(prices: Prices) -> None:
    used = prices.code()
    prices.call(confirm_token=used)
    for _ in range(12):
        assert reason(prices.call(confirm_token=used)) == "used"
        assert reason(prices.call(name="b", confirm_token=used)) == "other_arguments"
    assert wrong_codes(prices.machine) == 0
    assert reason(prices.call(confirm_token="wrong")) == "invalid"
    assert wrong_codes(prices.machine) == 1


def wrong_codes(machine: Machine) -> int:
    """In the limiter's own store, which no rollback reaches."""
    assert machine.key is not None
    bucket = Bucket(policy="code", name=f"code:key:{machine.key.family_id}", budget=10, seconds=600)
    return 10 - ratelimit.levels([bucket])[0].remaining


# --- How many wait --------------------------------------------------------------------------------------------------------------------


def wait(caller: str, count: int, **fields: Any) -> None:
    for _ in range(count):
        factories.make_confirmation(caller=caller, **fields)


def test_a_hundred_codes_wait_for_one_caller_at_most(prices: Prices) -> None:
    assert prices.machine.key is not None
    caller = f"key:{prices.machine.key.family_id}"
    wait(caller, 99)
    wait(caller, 3, state="used")
    wait(caller, 3, expires_at=timezone.now() - timedelta(seconds=1))
    wait("key:another", 3)
    hundredth = prices.call(idempotency_key="a").json()
    refused = prices.call(idempotency_key="k")
    assert (refused.status_code, refused.json()["code"]) == (409, "conflict")
    assert (refused.json()["reason"], refused.json()["retry"]) == ("too_many_waiting", "later")
    assert (IdempotencyRecord.objects.get(key="k").state, entries()[-1]) == ("waiting", ("error", "conflict", None))
    assert prices.call(factories.make_machine(scopes=[SCOPE])).json()["status"] == "confirmation_required"
    put("price", 7)  # a changed one takes the place of its own row
    changed = prices.call(confirm_token=hundredth["confirm_token"]).json()
    assert changed["reason"] == "changed"
    assert prices.call(confirm_token=changed["confirm_token"]).status_code == 200
    assert prices.call(idempotency_key="k").json()["status"] == "confirmation_required"


@pytest.mark.alone
def test_the_hundred_is_exact_under_parallel_callers(prices: Prices) -> None:
    assert prices.machine.key is not None
    wait(f"key:{prices.machine.key.family_id}", 90)
    together = threading.Barrier(8)

    def ask(_: int) -> list[int]:
        machine = Machine(text=prices.machine.text)
        try:
            together.wait()
            return [machine.call("shop.run", {}).status_code for _ in range(4)]
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        answers = [status for found in pool.map(ask, range(8)) for status in found]
    assert (answers.count(200), answers.count(409)) == (10, 22)
    assert Confirmation.objects.filter(state="waiting").count() == 100


@pytest.mark.alone
def test_parallel_redeems_of_a_code_whose_values_changed_hold_one_new_prompt(prices: Prices) -> None:
    code = prices.code()
    put("price", 7)
    together = threading.Barrier(6)

    def redeem(_: int) -> dict[str, Any]:
        machine = Machine(text=prices.machine.text)
        try:
            together.wait()
            return dict(machine.call("shop.run", {"confirm_token": code}).json())
        finally:
            connection.close()

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(redeem, range(6)))
    prompts = [answer for answer in answers if answer.get("status") == "confirmation_required"]
    assert [answer["reason"] for answer in prompts] == ["changed"]
    assert {answer["reason"] for answer in answers if answer not in prompts} <= {"used", "expired"}
    assert (sorted(states()), prices.ran) == (["expired", "waiting"], 0)


# --- Public callers -------------------------------------------------------------------------------------------------------------------


@pytest.fixture
def visitor(shop: Shop) -> Machine:
    factories.set_setting("api_public_enabled", True)
    module = Module(key="shop", name="Shop")
    fields = {"type": "object", "properties": {"visitor": {"type": "string"}}}
    tool = module.tool("shop.ask", audience="public", input_schema=fields, client_token="visitor", danger="always")(
        lambda given, ctx: {"done": put("a")}
    )
    tool.preview(harmless)
    shop.open(module)
    return Machine()


def test_a_visitors_code_belongs_to_its_token(visitor: Machine) -> None:
    one, two = {"visitor": "token-of-visitor-1"}, {"visitor": "token-of-visitor-2"}
    code = visitor.call("shop.ask", one).json()["confirm_token"]
    assert reason(visitor.call("shop.ask", {**two, "confirm_token": code})) == "invalid"
    assert visitor.call("shop.ask", {**one, "confirm_token": code}).json() == {"done": "a"}
    assert not Entry.objects.filter(action="api.request").exists()


def test_a_visitor_without_a_token_can_confirm_nothing(visitor: Machine) -> None:
    code = visitor.call("shop.ask", {"visitor": "token-of-visitor-1"}).json()["confirm_token"]
    for body in ({}, {"confirm_token": code}):
        found = visitor.call("shop.ask", body)
        assert (found.status_code, found.json()["errors"][0]["pointer"]) == (422, "/visitor")
    assert (stored(), states()) == ([], ["waiting"])


# --- Where a code is ------------------------------------------------------------------------------------------------------------------


def test_no_code_is_kept_in_a_table_or_a_log(prices: Prices, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    first = prices.code(idempotency_key="k")
    prices.fail = RuntimeError("broken")
    prices.call(idempotency_key="k", confirm_token=first)
    prices.fail = None
    put("price", 7)
    changed = prices.call(idempotency_key="k", confirm_token=first).json()["confirm_token"]
    prices.call(idempotency_key="k", confirm_token=changed)
    prices.call(confirm_token=changed)
    prices.call(confirm_token="tc_" + "9" * 32)
    waits = prices.code()
    for code in (first, changed, waits, "tc_" + "9" * 32):
        assert code not in everything_stored()
        assert code not in caplog.text


def everything_stored() -> str:
    found: list[str] = []
    for model in apps.get_models():
        for values in model._default_manager.values_list():
            found += [
                bytes(one).decode("latin-1") if isinstance(one, bytes | memoryview) else str(one) for one in values
            ]
    return "\n".join(found)
