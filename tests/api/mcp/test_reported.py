"""Faults that other servers were reported for (CASES M1 to M12), where the files of the parts don't show them from end to end."""

import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from apps.activity.models import Entry
from apps.api import Module, ToolError
from tests.api import factories, problem
from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, Client
from tests.api.shop import PERMISSION, SCOPE, Shop, harmless

pytestmark = pytest.mark.sqlite

TEXTS = (
    "Größe",
    "Лампа настольная",
    "台灯、照明",
    "مصباح مكتب",
    "מנורה",
    "โคมไฟ",
    "टेबल लैंप",
    "Ω ≤ ½",
    "🧾👩‍🔧",
    "\u2028 \u2029 \ufeff",
    '"quoted" \\ <b>',
)


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def listed(client: Client) -> dict[str, Any]:
    result = client.result("tools/list")
    assert "nextCursor" not in result
    return {tool["name"]: tool for tool in result["tools"]}


@pytest.mark.parametrize("audience", ["admin", "public"])
def test_every_shipped_tool_is_listed_as_every_client_takes_it(transactional_db: None, era: str, audience: str) -> None:
    """M1, M2: names of letters, digits and underscores, also behind a client's prefix; no reference, no choice at a root."""
    factories.set_setting("api_public_enabled", True)
    machine = factories.make_machine(scopes=["catalogue:read", "catalogue:write"]) if audience == "admin" else Machine()
    tools = listed(Client(machine=machine, version=era))
    assert len(tools) >= (10 if audience == "admin" else 2)
    for name, tool in tools.items():
        assert re.fullmatch(r"[a-z0-9_]{1,40}", name)
        assert not {"$ref", "$defs", "$dynamicRef"} & set(re.findall(r'"(\$\w+)"', json.dumps(tool)))
        for schema in [tool["inputSchema"], *([tool["outputSchema"]] if "outputSchema" in tool else [])]:
            assert schema["type"] == "object"
            assert not {"anyOf", "oneOf", "allOf", "not"} & set(schema)


def test_three_hundred_tools_are_one_page(shop: Shop, era: str) -> None:
    """M9: a client that reads one page only has all of them."""
    module = Module(key="shop", name="Shop")
    for number in range(300):
        module.tool(
            f"shop.tool_{number:03}", title="T", description="One of many.", scope=SCOPE, permission=PERMISSION
        )(lambda ctx: {}).preview(harmless)
    found = listed(Client(machine=shop.open(module), version=era))
    assert {f"shop_tool_{number:03}" for number in range(300)} <= set(found)


def test_values_and_texts_of_any_language_are_plain_utf_8(shop: Shop, era: str) -> None:
    """M10: as structure and as text, on the wire and not only after parsing."""
    moment = datetime(2026, 7, 28, 12, 30, tzinfo=UTC)
    given = {"price": Decimal("0.10"), "id": UUID(int=7), "day": date(2026, 7, 28), "at": moment, "hour": time(9, 5)}
    plain = {"price": "0.10", "id": str(UUID(int=7)), "day": "2026-07-28", "at": moment.isoformat(), "hour": "09:05:00"}
    machine = shop.read(lambda *_: {**given, "texts": list(TEXTS), "by_text": dict.fromkeys(TEXTS[:7], Decimal(1))})
    answer = Client(machine=machine, version=era).send("tools/call", {"name": "shop_run"})
    wire, result = answer.content.decode("utf-8"), answer.json()["result"]
    assert result["structuredContent"] == {**plain, "texts": list(TEXTS), "by_text": dict.fromkeys(TEXTS[:7], "1")}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert [wire.count(text) for text in TEXTS[:9]] == [4] * 7 + [2] * 2
    assert r"\u" not in wire


def test_arguments_and_refusals_keep_their_language(shop: Shop, era: str) -> None:
    """M10, the way in, and the way out of a call that is refused."""

    def refuse(given: dict[str, Any], ctx: Any) -> Any:
        raise ToolError("not_found", f"Нет: {given['text']}", seen=given["text"])

    machine = shop.read(refuse, input_schema={"type": "object", "properties": {"text": {"type": "string"}}})
    for text in TEXTS:
        answer = Client(machine=machine, version=era).send(
            "tools/call", {"name": "shop_run", "arguments": {"text": text}}
        )
        found = json.loads(answer.json()["result"]["content"][0]["text"])
        assert (found["detail"], found["seen"]) == (f"Нет: {text}", text)
        assert "Нет" in answer.content.decode("utf-8")


@pytest.mark.parametrize("name", ["refused", "broken"])
def test_a_write_that_fails_leaves_its_entry(machine: Machine, era: str, name: str) -> None:
    """M8: the effect is undone and the entry is not, whatever the answer of HTTP."""
    Client(machine=machine, version=era).refusal("probe_store", {"name": name})
    entry = Entry.objects.get(action="api.request")
    assert (entry.target, entry.metadata["outcome"]) == ("probe.store", "error")


@pytest.mark.parametrize(
    "path",
    [
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/openid-configuration/mcp",
        "/mcp/.well-known/openid-configuration",
        "/mcp/.well-known/oauth-authorization-server",
    ],
)
def test_a_client_that_looks_for_a_sign_in_finds_json(db: None, path: str) -> None:
    """M6: what clients were seen to ask for after a 401, by either method."""
    client = Machine().client
    for answer in (client.get(path), client.post(path, "{}", content_type="application/json")):
        assert answer.status_code in (404, 405)
        assert answer.headers["Content-Type"].partition(";")[0] == "application/problem+json"
        assert answer.json()["status"] == answer.status_code


def test_a_code_is_good_for_its_tool_and_its_arguments_alone(machine: Machine, era: str) -> None:
    """M11."""
    client = Client(machine=machine, version=era)
    code = client.call("probe_weigh", {"weight": 11})["structuredContent"]["confirm_token"]
    for tool, given in (("probe_weigh", {"weight": 12}), ("probe_weigh", {"weight": 1}), ("probe_act", {})):
        refused = client.refusal(tool, {**given, "confirm_token": code})
        assert (refused["code"], refused["reason"]) == ("confirm_token_invalid", "other_arguments"), tool
    stranger = Client(machine=factories.make_machine(scopes=["probe:read", "probe:write"]), version=era)
    assert stranger.refusal("probe_weigh", {"weight": 11, "confirm_token": code})["reason"] == "invalid"
    assert client.call("probe_weigh", {"weight": 11, "confirm_token": code})["structuredContent"] == {"weight": 11}


def test_a_refusal_of_any_kind_is_http_200(machine: Machine, era: str) -> None:
    """M7: what an old client would end its session for; a wrong key alone is refused by HTTP."""
    narrow = factories.make_machine(scopes=["probe:read"])
    for tool, given, code in (
        ("probe_store", {"name": "a"}, "forbidden"),
        ("no_such", {}, "not_found"),
        ("probe_echo", {"nope": 1}, "validation_failed"),
    ):
        answer = Client(machine=narrow, version=era).send("tools/call", {"name": tool, "arguments": given})
        assert (answer.status_code, json.loads(answer.json()["result"]["content"][0]["text"])["code"]) == (200, code)
    wrong = Client(machine=Machine(text=str(machine.text)[:-1] + "~"), version=era)
    problem.of(wrong.send("tools/call", {"name": "probe_echo"}), 401, "unauthorized")


def test_any_accept_is_answered_by_json(machine: Machine, era: str) -> None:
    """M5: also the `Accept` of curl, and one that a proxy took away."""
    client = Client(machine=machine, version=era)
    for accept in ("*/*", "application/json", "application/json, text/event-stream", "text/event-stream", "text/html"):
        answer = client.send("tools/call", {"name": "probe_echo"}, headers={"Accept": accept})
        assert (answer.status_code, answer.headers["Content-Type"]) == (200, "application/json"), accept
        assert answer.json()["result"]["isError"] is False
    body, headers = client.message("tools/call", {"name": "probe_echo"})
    assert client.post(body, headers=headers).headers["Content-Type"] == "application/json"
