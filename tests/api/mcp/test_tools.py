"""`tools/list` and `tools/call` (MC-2, MC-3)."""

import json
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone
from jsonschema import Draft202012Validator

from apps.activity.models import Entry
from apps.api import Module
from apps.api.models import IdempotencyRecord, Setting
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, Client
from tests.api.shop import PERMISSION, SCOPE, Shop, harmless

pytestmark = pytest.mark.sqlite


@pytest.fixture(params=[ERAS[0], ERAS[-1]])
def client(request: pytest.FixtureRequest, machine: Machine) -> Client:
    return Client(machine=machine, version=request.param)


def listed(client: Client) -> dict[str, Any]:
    return {tool["name"]: tool for tool in client.result("tools/list")["tools"]}


def test_tools_are_listed_with_underscores_and_all_that_a_client_shows(client: Client) -> None:
    tools = listed(client)
    assert "probe_store" in tools
    assert "system_whoami" in tools
    assert "probe_look" not in tools
    for tool in tools.values():
        assert tool["title"]
        assert tool["description"]
        assert {
            type(tool["annotations"][f"{hint}Hint"]) for hint in ("readOnly", "destructive", "idempotent", "openWorld")
        } == {bool}
        assert tool["inputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
    assert {"dry_run", "confirm_token", "idempotency_key"} <= set(tools["probe_store"]["inputSchema"]["properties"])


def test_only_what_the_key_may_call_is_listed(machine: Machine) -> None:
    reader = Client(machine=factories.make_machine(scopes=[probe.READ]))
    assert "probe_store" not in listed(reader)
    assert reader.refusal("probe_store", {"name": "a"})["code"] == "forbidden"


def test_schemas_are_plain(shop: Shop) -> None:
    kind: dict[str, Any] = {
        "type": "object",
        "$defs": {"size": {"type": "integer", "minimum": 1}},
        "properties": {"size": {"$ref": "#/$defs/size"}},
        "anyOf": [{"required": ["size"]}, {"properties": {"weight": {"type": "number"}}, "required": ["weight"]}],
    }
    output = {"$defs": {"size": {"type": "integer"}}, "properties": {"size": {"$ref": "#/$defs/size"}}}
    machine = shop.read(
        lambda given, ctx: {"size": 1},
        input_schema={**kind, "properties": {**kind["properties"], "weight": {"type": "number"}}},
        output_schema=output,
    )
    tool = listed(Client(machine=machine))["shop_run"]
    assert "$ref" not in json.dumps(tool)
    assert not {"anyOf", "$defs"} & set(tool["inputSchema"])
    assert set(tool["inputSchema"]["properties"]) == {"size", "weight"}
    assert tool["outputSchema"] == {"type": "object", "properties": {"size": {"type": "integer"}}}
    assert Client(machine=machine).refusal("shop_run")["code"] == "validation_failed"


@pytest.mark.parametrize(
    ("schema", "answers"),
    [
        (
            {"properties": {"note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}}},
            [{"note": None}, {"note": "x"}, {}],
        ),
        (
            {
                "$defs": {"note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None}},
                "properties": {"notes": {"type": "array", "items": {"$ref": "#/$defs/note"}}},
            },
            [{"notes": [None, "x"]}],
        ),
        (
            {
                "anyOf": [
                    {"properties": {"kind": {"const": "size"}, "value": {"type": "integer"}}},
                    {"properties": {"kind": {"const": "name"}, "value": {"type": "string"}}},
                ]
            },
            [{"kind": "size", "value": 1}, {"kind": "name", "value": "x"}],
        ),
    ],
)
def test_what_a_tool_answers_fits_its_listed_output_schema(shop: Shop, schema: Any, answers: list[Any]) -> None:
    """The official clients hold each result to it."""
    given = {"type": "object", "properties": {"answer": {}}}
    client = Client(
        machine=shop.read(lambda given, ctx: given["answer"], input_schema=given, output_schema=schema),
        version="2025-11-25",
    )
    shown = listed(client)["shop_run"]["outputSchema"]
    assert not {"anyOf", "oneOf", "$defs"} & set(shown)
    for answer in answers:
        result = client.call("shop_run", {"answer": answer})
        assert list(Draft202012Validator(shown).iter_errors(result["structuredContent"])) == []


def test_a_write_lists_no_output_schema(shop: Shop) -> None:
    machine = shop.write(lambda given, ctx: {}, output_schema={"type": "object"})
    assert "outputSchema" not in listed(Client(machine=machine))["shop_run"]


@pytest.mark.parametrize("name", ["probe_echo", "probe.echo"])
def test_both_spellings_are_called(client: Client, name: str) -> None:
    result = client.call(name, {"text": "grüße 日本"})
    assert result["isError"] is False
    assert result["structuredContent"]["text"] == "grüße 日本"
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]


@pytest.mark.parametrize(
    "name",
    [
        "probe_store",
        "probe.store",
        "probe_look",
        "probe.look",
        "probe-echo",
        "PROBE_ECHO",
        "probe__echo",
        "",
        "x" * 5_000,
    ],
)
def test_no_spelling_goes_round_a_rule(machine: Machine, name: str) -> None:
    factories.set_setting("api_disabled_tools", ["probe.store"])
    client = Client(machine=machine)
    assert client.refusal(name, {"name": "a"})["code"] == "not_found"
    assert not Setting.objects.filter(name="a").exists()


@pytest.mark.parametrize("given", [{}, {"arguments": None}, {"arguments": {}}])
def test_no_arguments_are_an_empty_object(client: Client, given: dict[str, Any]) -> None:
    assert client.result("tools/call", {"name": "probe_echo", **given})["structuredContent"]["text"] == ""


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"name": 5},
        {"name": None},
        {"name": "probe_echo", "arguments": []},
        {"name": "probe_echo", "arguments": "x"},
    ],
)
def test_odd_parameters_are_invalid(machine: Machine, params: dict[str, Any]) -> None:
    client = Client(machine=machine, version="2025-11-25")
    answer = client.send("tools/call", params)
    assert (answer.status_code, answer.json()["error"]["code"]) == (200, -32602)


def test_refusals_are_results_that_a_model_can_read(client: Client) -> None:
    assert client.refusal("no_such")["code"] == "not_found"
    assert client.refusal("probe_echo", {"nope": 1})["errors"][0]["pointer"] == "/nope"
    assert client.refusal("probe_echo", {"dry_run": True})["code"] == "validation_failed"
    assert client.refusal("probe_store", {"name": "refused"})["code"] == "probe_refused"
    broken = client.refusal("probe_store", {"name": "broken"})
    assert (broken["code"], "secret" in str(broken)) == ("internal_error", False)


def test_plain_values_come_out_as_plain_json(shop: Shop) -> None:
    when = timezone.now()
    odd = {"price": Decimal("1.10"), "id": UUID(int=7), "day": date(2026, 7, 28), "at": when, "text": "Ω 🧾"}
    client = Client(machine=shop.read(lambda given, ctx: odd))
    answer = client.send("tools/call", {"name": "shop_run"})
    assert "Ω 🧾" in answer.content.decode()
    assert answer.json()["result"]["structuredContent"] == {
        "price": "1.10",
        "id": str(UUID(int=7)),
        "day": "2026-07-28",
        "at": when.isoformat(),
        "text": "Ω 🧾",
    }


def test_a_write_leaves_its_entry(client: Client) -> None:
    assert client.call("probe_store", {"name": "kept"})["structuredContent"] == {"name": "kept", "value": 1}
    entry = Entry.objects.get(action="api.request")
    assert (entry.target, entry.metadata["outcome"]) == ("probe.store", "ok")


def test_a_dangerous_write_is_held_and_run_with_its_code(client: Client) -> None:
    prompt = client.call("probe_weigh", {"weight": 11})["structuredContent"]
    assert prompt["status"] == "confirmation_required"
    code = prompt["confirm_token"]
    other = client.refusal("probe_weigh", {"weight": 12, "confirm_token": code})
    assert (other["code"], other["reason"]) == ("confirm_token_invalid", "other_arguments")
    assert client.call("probe_weigh", {"weight": 11, "confirm_token": code})["structuredContent"] == {"weight": 11}
    assert client.refusal("probe_weigh", {"weight": 11, "confirm_token": code})["reason"] == "used"


def test_a_key_that_requires_approval_gets_the_page(tools: Any, transactional_db: None) -> None:
    client = Client(machine=factories.make_machine(scopes=[probe.WRITE], requires_approval=True))
    waiting = client.call("probe_store", {"name": "later"})["structuredContent"]
    assert waiting["status"] == "pending_approval"
    assert waiting["url"].endswith(f"/approvals/{waiting['approval_id']}/")
    found = client.call("system_get_approval", {"approval_id": waiting["approval_id"]})["structuredContent"]
    assert found["status"] == "pending"
    assert (
        client.call("system_cancel_approval", {"approval_id": waiting["approval_id"]})["structuredContent"]["status"]
        == "cancelled"
    )


def test_a_replay_is_marked_and_crosses_the_transports(client: Client) -> None:
    given = {"name": "once", "idempotency_key": "mine"}
    first = client.call("probe_store", given)
    again = client.call("probe_store", given)
    assert "Idempotent-Replayed" not in first.get("_meta", {})
    assert again["_meta"]["Idempotent-Replayed"] is True
    assert again["content"] == first["content"]
    rest = client.machine.call("probe.store", {"name": "once"}, headers={"Idempotency-Key": "mine"})
    assert rest.headers["Idempotent-Replayed"] == "true"
    assert rest.content.decode() == first["content"][0]["text"]


def test_a_refused_replay_is_marked_too(client: Client) -> None:
    given = {"name": "refused", "idempotency_key": "mine"}
    client.refusal("probe_store", given)
    again = client.call("probe_store", given)
    assert (again["isError"], again["_meta"]["Idempotent-Replayed"]) == (True, True)


def test_the_header_of_rest_is_not_looked_at(client: Client) -> None:
    params = {"name": "probe_store", "arguments": {"name": "once"}}
    client.result("tools/call", params, headers={"Idempotency-Key": "mine"})
    assert not IdempotencyRecord.objects.exists()


def test_meta_is_no_part_of_the_arguments(client: Client) -> None:
    given = {"name": "once", "idempotency_key": "mine"}
    client.call("probe_store", given, _meta={"progressToken": 1})
    again = client.call("probe_store", given, _meta={"progressToken": 2, "other": "x"})
    assert again["_meta"]["Idempotent-Replayed"] is True


def test_arguments_named_like_members_of_the_protocol_are_the_tools_own(shop: Shop) -> None:
    fields = {"_meta": {"type": "string"}, "name": {"type": "string"}, "arguments": {"type": "string"}}
    client = Client(machine=shop.read(lambda given, ctx: given, input_schema={"type": "object", "properties": fields}))
    given = {"_meta": "a", "name": "b", "arguments": "c"}
    assert client.call("shop_run", given)["structuredContent"] == given


def test_a_tool_that_contains_itself_is_still_listed(shop: Shop) -> None:
    tree = {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/node"}},
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    }
    module = Module(key="shop", name="Shop")
    module.tool("shop.run", title="Run", description="Runs.", scope=SCOPE, permission=PERMISSION, input_schema=tree)(
        lambda given, ctx: {}
    ).preview(harmless)
    client = Client(machine=shop.open(module))
    assert "$defs" in listed(client)["shop_run"]["inputSchema"]
