"""A dangerous call through a client that asks its person (MC-4)."""

import json
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from django.utils import timezone

from apps.activity.models import Entry
from apps.api import faults
from apps.api.models import Confirmation
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.mcp.client import Client, left
from tests.api.shop import Shop, put, stored
from tests.api.together import at_once

pytestmark = pytest.mark.sqlite

YES = {"confirm": {"action": "accept", "content": {"ok": True}}}


@pytest.fixture
def client(machine: Machine) -> Client:
    return Client(machine=machine, capabilities={"elicitation": {}})


def ask(client: Client, weight: int = 11) -> dict[str, Any]:
    result = client.call("probe_weigh", {"weight": weight})
    assert result["resultType"] == "input_required", result
    return result


def reply(client: Client, state: Any, responses: Any = YES, *, tool: str = "probe_weigh", **given: Any) -> Any:
    params = {"name": tool, "arguments": given or {"weight": 11}, "requestState": state, "inputResponses": responses}
    return client.send("tools/call", params)


def result_of(answer: Any) -> dict[str, Any]:
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()["result"]
    return found


def is_invalid(answer: Any) -> bool:
    return bool(answer.status_code == 400 and answer.json()["error"]["code"] == -32602)


def reason(answer: Any) -> str:
    result = result_of(answer)
    assert result["isError"] is True, result
    return str(json.loads(result["content"][0]["text"])["reason"])


def state_of_row() -> str:
    return Confirmation.objects.get().state


def test_a_client_that_asks_gets_a_question_and_no_code(client: Client) -> None:
    result = ask(client)
    question = result["inputRequests"]["confirm"]
    assert question["method"] == "elicitation/create"
    assert "Weigh." in question["params"]["message"]
    assert question["params"]["requestedSchema"]["required"] == ["ok"]
    assert "confirm_token" not in str(result)
    assert "content" not in result


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {"url": {}}}, {"sampling": {}}, {"elicitation": None}])
def test_a_client_that_can_not_ask_gets_the_prompt(machine: Machine, capabilities: dict[str, Any]) -> None:
    result = Client(machine=machine, capabilities=capabilities).call("probe_weigh", {"weight": 11})
    assert result["structuredContent"]["confirm_token"]


def test_an_old_client_gets_the_prompt_whatever_it_says(machine: Machine) -> None:
    client = Client(machine=machine, version="2025-11-25")
    assert client.call(
        "probe_weigh", {"weight": 11}, _meta={"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    )["structuredContent"]["confirm_token"]


def test_a_yes_runs_it_once(client: Client) -> None:
    state = ask(client)["requestState"]
    assert result_of(reply(client, state))["structuredContent"] == {"weight": 11}
    assert reason(reply(client, state)) == "used"
    entries = (
        Entry.objects.filter(action="api.request").order_by("created_at").values_list("metadata__outcome", flat=True)
    )
    assert list(entries) == ["confirmation_required", "ok", "error"]


def test_a_no_rejects_it_with_an_entry(client: Client, subtests: pytest.Subtests) -> None:
    answers: tuple[dict[str, Any], ...] = ({"action": "decline"}, {"action": "accept", "content": {"ok": False}})
    for said in answers:
        with subtests.test(said["action"]):
            state = ask(client)["requestState"]
            result = result_of(reply(client, state, {"confirm": said}))
            assert result["structuredContent"]["status"] == "rejected"
            assert reason(reply(client, state)) == "rejected"
    assert Entry.objects.filter(action="api.confirmation_rejected", actor_kind="key").count() == 2


def test_a_cancel_leaves_it_waiting(client: Client) -> None:
    state = ask(client)["requestState"]
    result = result_of(reply(client, state, {"confirm": {"action": "cancel"}}))
    assert result["structuredContent"]["status"] == "confirmation_required"
    assert state_of_row() == "waiting"
    assert result_of(reply(client, state))["structuredContent"] == {"weight": 11}


@pytest.mark.parametrize(
    "responses",
    [
        None,
        {},
        [],
        "yes",
        {"other": YES["confirm"]},
        {"confirm": "yes"},
        {"confirm": {"action": "accept"}},
        {"confirm": {"action": "accept", "content": {"ok": "true"}}},
        {"confirm": {"action": "accept", "content": {"ok": 1}}},
        {"confirm": {"action": "yes", "content": {"ok": True}}},
    ],
)
def test_a_missing_or_wrong_answer_is_asked_again_and_runs_nothing(client: Client, responses: Any) -> None:
    state = ask(client)["requestState"]
    again = result_of(reply(client, state, responses))
    assert again["resultType"] == "input_required"
    assert again["requestState"] == state
    assert "Weigh." in again["inputRequests"]["confirm"]["params"]["message"]
    assert state_of_row() == "waiting"
    assert result_of(reply(client, state, {**YES, "more": {"action": "accept"}}))["structuredContent"] == {"weight": 11}


def test_a_tampered_or_malformed_state_is_invalid(client: Client, subtests: pytest.Subtests) -> None:
    state = ask(client)["requestState"]
    other = ask(client)["requestState"]
    spliced = other.partition(":")[0] + ":" + state.partition(":")[2]
    states: tuple[Any, ...] = (
        state + "-TAMPERED",
        state[:-1],
        state.upper(),
        spliced,
        "",
        "x",
        "a:b",
        "ü" * 40,
        5,
        {},
        [],
        True,
    )
    for odd in states:
        with subtests.test(repr(odd)):
            assert is_invalid(reply(client, odd))
    assert set(Confirmation.objects.values_list("state", flat=True)) == {"waiting"}


def test_a_state_of_another_caller_or_tool_is_invalid(client: Client) -> None:
    state = ask(client)["requestState"]
    stranger = factories.make_machine(scopes=[probe.READ, probe.WRITE])
    assert is_invalid(reply(Client(machine=stranger, capabilities={"elicitation": {}}), state))
    assert is_invalid(reply(client, state, tool="probe_act"))
    assert is_invalid(reply(client, state, tool="no_such"))
    assert result_of(reply(client, state, tool="probe.weigh"))["structuredContent"] == {"weight": 11}


def test_changed_arguments_are_refused(client: Client) -> None:
    state = ask(client)["requestState"]
    assert reason(reply(client, state, weight=12)) == "other_arguments"
    assert reason(reply(client, state, weight=1)) == "other_arguments"
    assert state_of_row() == "waiting"


@pytest.mark.parametrize("said", [None, {"confirm": {"action": "cancel"}}])
def test_changed_arguments_are_not_even_asked_about_again(client: Client, said: Any) -> None:
    state = ask(client)["requestState"]
    assert reason(reply(client, state, said, weight=12)) == "other_arguments"
    assert reason(reply(client, state, said, weight=1)) == "other_arguments"
    assert state_of_row() == "waiting"


def test_a_no_is_heard_whatever_the_arguments_are(client: Client) -> None:
    state = ask(client)["requestState"]
    said = {"confirm": {"action": "decline"}}
    assert result_of(reply(client, state, said, weight="odd"))["structuredContent"]["status"] == "rejected"


def shown_for(shop: Shop, shown: dict[str, Any]) -> str:
    machine = shop.write(lambda given, ctx: {}, shown=lambda given, ctx: (shown, "fixed"), danger="always")
    client = Client(machine=machine, capabilities={"elicitation": {}})
    return str(client.call("shop_run", {})["inputRequests"]["confirm"]["params"]["message"])


def test_stored_values_make_no_lines_of_their_own_in_the_question(shop: Shop) -> None:
    lie = "Lamp\r\n- Sofa, price: 5 \u2192 4\u2028\u2029\x0b\x85\x1b[2K\u202e"
    rows = [{"label": lie, "field": lie, "before": lie, "after": lie, "note": lie}]
    text = shown_for(shop, {"summary": lie, "rows": rows, "more": 0})
    assert len(text.splitlines()) == 2
    assert not {"\x1b", "\u202e"} & set(text)


def test_a_long_value_hides_no_row_of_the_question(shop: Shop) -> None:
    long = {"label": "x" * 3_000, "field": "price", "before": "y" * 3_000, "after": 1, "note": "z" * 3_000}
    rows = [*([long] * 19), {"label": "Last", "field": "price", "before": 2, "after": 3, "note": ""}, long]
    text = shown_for(shop, {"summary": "s" * 5_000, "rows": rows, "more": 4})
    assert "- Last, price: 2 \u2192 3\n- and 5 more" in text
    assert len(text) < 20_000


def test_an_expired_state_is_refused(client: Client) -> None:
    state = ask(client)["requestState"]
    Confirmation.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert reason(reply(client, state)) == "expired"
    assert reason(reply(client, state, {"confirm": {"action": "decline"}})) == "expired"
    assert reason(reply(client, state, None)) == "expired"


def test_changed_values_ask_anew(shop: Shop) -> None:
    def shown(given: dict[str, Any], ctx: Any) -> Any:
        return {"summary": f"{len(stored())} stored"}, str(len(stored()))

    machine = shop.write(lambda given, ctx: {"put": put("effect")}, shown=shown, danger="always")
    client = Client(machine=machine, capabilities={"elicitation": {"form": {}}})
    first = client.call("shop_run", {})
    put("other")
    second = result_of(
        client.send("tools/call", {"name": "shop_run", "requestState": first["requestState"], "inputResponses": YES})
    )
    assert second["resultType"] == "input_required"
    assert second["requestState"] != first["requestState"]
    assert stored() == ["other"]
    third = result_of(
        client.send("tools/call", {"name": "shop_run", "requestState": second["requestState"], "inputResponses": YES})
    )
    assert third["structuredContent"] == {"put": "effect"}


def test_a_state_goes_with_no_code_and_no_preview(client: Client) -> None:
    state = ask(client)["requestState"]
    assert is_invalid(reply(client, state, weight=11, confirm_token="x"))
    assert result_of(reply(client, state, weight=11, dry_run=True))["isError"] is True
    assert state_of_row() == "waiting"


def test_a_key_that_requires_approval_by_now_has_no_state(client: Client, machine: Machine) -> None:
    state = ask(client)["requestState"]
    assert machine.key is not None
    machine.key.requires_approval = True
    machine.key.save(update_fields=["requires_approval"])
    assert reason(reply(client, state)) == "invalid"


def test_an_idempotency_key_waits_with_the_question(client: Client) -> None:
    given: dict[str, Any] = {"weight": 11, "idempotency_key": "mine"}
    state = client.call("probe_weigh", given)["requestState"]
    assert result_of(reply(client, state, **given))["structuredContent"] == {"weight": 11}
    assert client.call("probe_weigh", given)["_meta"]["Idempotent-Replayed"] is True


def test_every_reply_is_paid(client: Client) -> None:
    state = ask(client)["requestState"]
    before = left(client.send("tools/list"))
    assert left(reply(client, state, {"confirm": {"action": "cancel"}})) == before - 1
    assert left(reply(client, state, None)) == before - 3
    assert left(reply(client, state)) == before - 4


def test_a_no_waits_for_a_run_as_long_as_any_lock_is_waited_for(
    client: Client, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(faults, "LOCK_WAIT", "50ms")
    state = ask(client)["requestState"]
    no = {"confirm": {"action": "decline"}}
    with psycopg.connect(postgres_url) as run:  # which has spent the row and has not committed yet
        run.execute("SET lock_timeout = '20s'")
        run.execute("UPDATE api_confirmation SET state = 'used'")
        assert reason(reply(client, state, no)) == "busy"
        run.rollback()
    assert result_of(reply(client, state, no))["structuredContent"]["status"] == "rejected"


@pytest.mark.alone
def test_twenty_yeses_at_once_run_it_once(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {"put": put("effect")}, danger="always")
    state = Client(machine=machine, capabilities={"elicitation": {}}).call("shop_run", {})["requestState"]

    def yes() -> dict[str, Any]:
        own = Client(machine=Machine(text=machine.text, key=machine.key), capabilities={"elicitation": {}})
        return result_of(own.send("tools/call", {"name": "shop_run", "requestState": state, "inputResponses": YES}))

    results = at_once(*[yes] * 20)
    refused = [json.loads(result["content"][0]["text"])["reason"] for result in results if result["isError"]]
    assert (len(refused), set(refused) <= {"used", "busy"}) == (19, True)
    assert stored() == ["effect"]
