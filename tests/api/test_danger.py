"""Step 8 in its order (SPEC 11): previews, keys that ask a person, codes, prompts."""

from typing import Any

import pytest

from apps.activity.models import Entry
from apps.api import ToolError, preview
from apps.api.models import Confirmation, IdempotencyRecord
from tests.api import factories
from tests.api.factories import Machine
from tests.api.shop import SCOPE, Shop, put, stored

pytestmark = pytest.mark.sqlite


def entries() -> list[tuple[str, str | None, bool]]:
    """Outcome, code and whether a confirmation is named, of each entry in order."""
    found = Entry.objects.filter(action="api.request").order_by("created_at")
    return [(row.metadata["outcome"], row.metadata["code"], bool(row.metadata["confirmation_uuid"])) for row in found]


def make_dangerous(shop: Shop, **declared: Any) -> Machine:
    return shop.write(lambda given, ctx: {"done": put("a")}, **{"danger": "always", **declared})


@pytest.mark.parametrize("danger", ["always", None])
@pytest.mark.parametrize("code", ["nobody's", "right"])
@pytest.mark.parametrize("approval", [False, True])
def test_a_preview_with_a_code_is_invalid_and_the_code_stays_good(
    shop: Shop, danger: Any, code: str, approval: bool
) -> None:
    machine = make_dangerous(shop, danger=danger)
    if code == "right" and danger:
        code = machine.call("shop.run").json()["confirm_token"]
    caller = factories.make_machine(scopes=[SCOPE], requires_approval=True) if approval else machine
    found = caller.call("shop.run", {"dry_run": True, "confirm_token": code, "idempotency_key": "k"})
    assert (found.status_code, found.json()["code"]) == (422, "validation_failed")
    assert found.json()["errors"][0]["pointer"] == "/confirm_token"
    assert not Confirmation.objects.exclude(state="waiting").exists()
    assert stored() == []


def test_a_preview_answers_writes_nothing_and_is_recorded(shop: Shop) -> None:
    machine = make_dangerous(shop)
    careful = factories.make_machine(scopes=[SCOPE], requires_approval=True)
    for caller in (machine, careful):
        found = caller.call("shop.run", {"dry_run": True, "idempotency_key": "k"})
        assert found.json() == {"status": "preview", "preview": preview("Something.")}
    assert entries() == [("preview", None, False)] * 2
    assert (Confirmation.objects.count(), IdempotencyRecord.objects.count(), stored()) == (0, 0, [])


@pytest.mark.parametrize("reach", ["database", "external"])
@pytest.mark.parametrize("danger", ["always", None])
def test_a_key_that_requires_approval_has_no_codes(shop: Shop, danger: Any, reach: str) -> None:
    make_dangerous(shop, danger=danger, reach=reach)
    careful = factories.make_machine(scopes=[SCOPE], requires_approval=True)
    for more in ({}, {"idempotency_key": "k"}):
        found = careful.call("shop.run", {"confirm_token": "any", **more})
        assert (found.status_code, found.json()["code"]) == (409, "confirm_token_invalid")
        assert careful.call("shop.run", more).json()["status"] == "pending_approval"
    assert stored() == []
    assert list(IdempotencyRecord.objects.values_list("state", flat=True)) == ["waiting"]


def test_a_code_is_redeemed_whether_the_call_is_dangerous_or_not(shop: Shop) -> None:
    limit = [True]
    machine = make_dangerous(shop, danger=lambda given, ctx: limit[0])
    code = machine.call("shop.run").json()["confirm_token"]
    limit[0] = False
    assert machine.call("shop.run", {"confirm_token": "nobody's"}).json()["reason"] == "invalid"
    assert stored() == []
    assert machine.call("shop.run", {"confirm_token": code}).json() == {"done": "a"}
    assert machine.call("shop.run", {"confirm_token": code}).json()["reason"] == "used"
    assert machine.call("shop.run").json() == {"done": "a"}


def test_a_right_code_does_not_ask_the_danger_rule_again(shop: Shop) -> None:
    asked: list[int] = []

    def rule(given: Any, ctx: Any) -> bool:
        asked.append(1)
        return True

    machine = make_dangerous(shop, danger=rule)
    code = machine.call("shop.run").json()["confirm_token"]
    assert machine.call("shop.run", {"confirm_token": code}).json() == {"done": "a"}
    assert asked == [1]


def _raise(*_: object, **__: object) -> Any:
    raise RuntimeError("broken")


@pytest.mark.parametrize("answer", [None, 0, 1, "yes", [], _raise])
@pytest.mark.parametrize("reach", ["database", "external"])
def test_a_rule_that_says_neither_yes_nor_no_runs_nothing(shop: Shop, answer: Any, reach: str) -> None:
    rule = answer if callable(answer) else lambda given, ctx: answer
    machine = make_dangerous(shop, danger=rule, reach=reach)
    for more in ({}, {"idempotency_key": "k"}):
        found = machine.call("shop.run", more)
        assert (found.status_code, found.json()["retry"]) == (500, "same_key")
    assert (stored(), entries()) == ([], [("error", "internal_error", False)] * 2)
    assert not IdempotencyRecord.objects.exists()


@pytest.mark.parametrize("reach", ["database", "external"])
def test_a_preview_that_fails_runs_nothing_and_holds_nothing(shop: Shop, reach: str) -> None:
    def refuse(given: Any, ctx: Any) -> Any:
        raise ToolError("sold_out", "Nothing is left.")

    for number, (shown, code) in enumerate([(refuse, "sold_out"), (_raise, "internal_error")]):
        machine = make_dangerous(shop, shown=shown, reach=reach)
        assert machine.call("shop.run", {"idempotency_key": str(number)}).json()["code"] == code
        assert machine.call("shop.run", {"dry_run": True}).json()["code"] == code
    assert (stored(), Confirmation.objects.count()) == ([], 0)


def test_neither_the_rule_nor_the_preview_can_write(shop: Shop) -> None:
    def write(given: Any, ctx: Any) -> Any:
        put("smuggled")
        return True

    def shown(given: Any, ctx: Any) -> Any:
        put("smuggled")
        return preview("x"), "x"

    assert make_dangerous(shop, danger=write).call("shop.run").status_code == 500
    assert make_dangerous(shop, shown=shown).call("shop.run").status_code == 500
    assert stored() == []


def test_a_prompt_says_what_is_to_be_confirmed(shop: Shop) -> None:
    machine = make_dangerous(shop)
    found = machine.call("shop.run").json()
    row = Confirmation.objects.get()
    assert set(found) == {
        "status", "confirm_token", "confirmation_id", "preview", "expires_at", "expires_in_seconds"
    }  # fmt: skip
    assert (found["status"], found["confirmation_id"]) == ("confirmation_required", str(row.uuid))
    assert (found["expires_in_seconds"], (row.expires_at - row.created_at).total_seconds()) == (600, 600)
    assert entries() == [("confirmation_required", None, True)]
    assert Entry.objects.get(action="api.request").metadata["confirmation_uuid"] == str(row.uuid)


def test_how_long_a_code_holds_is_a_setting(shop: Shop) -> None:
    factories.set_setting("api_code_minutes", 3)
    assert make_dangerous(shop).call("shop.run").json()["expires_in_seconds"] == 180


def test_an_invalid_call_leaves_the_code_good(shop: Shop) -> None:
    """G20"""
    machine = make_dangerous(shop)
    code = machine.call("shop.run").json()["confirm_token"]
    for body in ({"odd": 1}, {"idempotency_key": ""}, {"dry_run": 1}, {"dry_run": True}):
        assert machine.call("shop.run", {"confirm_token": code, **body}).status_code == 422
    assert machine.call("shop.run", {"confirm_token": code}).json() == {"done": "a"}
