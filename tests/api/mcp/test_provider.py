"""The host's provider (MC-5): what it serves, and that it stands behind the gate. `hosted` is the provider."""

import json
import sys
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import time_machine
from django.core.exceptions import ImproperlyConfigured
from django.utils import timezone
from structlog.testing import capture_logs

from apps.activity.models import Entry
from apps.api.mcp import provider
from apps.api.models import Setting
from tests.api import factories, probe
from tests.api.factories import Machine
from tests.api.mcp import hosted
from tests.api.mcp.client import ERAS, MODERN, Client, left

pytestmark = pytest.mark.sqlite

PAGE = Path(__file__).resolve().parents[3] / "docs" / "how-to" / "extend-mcp.md"
OF_A_PROVIDER = ("prompts/list", "prompts/get", "resources/read", "completion/complete")


@pytest.fixture
def host(settings: Any) -> None:
    settings.MCP_PROVIDER = "tests.api.mcp.hosted.Hosted"
    hosted.ASKED.clear()


@pytest.fixture
def client(machine: Machine, host: None) -> Client:
    return Client(machine=machine, capabilities={"elicitation": {}})


@pytest.fixture(params=[ERAS[0], ERAS[-1]])
def era(request: pytest.FixtureRequest, machine: Machine, host: None) -> Client:
    return Client(machine=machine, version=request.param)


def fault(answer: Any) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


def text(result: dict[str, Any]) -> str:
    return str(result["content"][0]["text"])


@pytest.mark.parametrize("method", OF_A_PROVIDER)
def test_without_the_setting_there_is_no_such_method(machine: Machine, method: str) -> None:
    client = Client(machine=machine)
    assert fault(client.send(method)) == (404, -32601)
    assert set(client.result("server/discover")["capabilities"]) == {"tools", "extensions"}


def test_the_capabilities_are_what_its_methods_stand_for(era: Client) -> None:
    wanted = {"protocolVersion": era.version}
    found = era.result("server/discover") if era.version == MODERN else era.result("initialize", wanted)
    own = {name: found["capabilities"][name] for name in ("prompts", "resources", "completions")}
    assert own == {"prompts": {}, "resources": {}, "completions": {}}
    assert fault(era.send("resources/list"))[1] == -32601


def test_its_methods_are_answered_in_the_revisions_form(era: Client) -> None:
    result = era.result("prompts/list")
    assert result["prompts"][0]["name"] == "summary"
    assert set(result) - {"prompts"} == (
        {"resultType", "ttlMs", "cacheScope", "_meta"} if era.version == MODERN else set()
    )
    assert era.result("prompts/get", {"name": "summary"})["messages"]
    assert era.result("resources/read", {"uri": "test://a"})["contents"][0]["uri"] == "test://a"


def test_each_method_costs_one_unit_also_where_it_fails(client: Client) -> None:
    before = left(client.send("tools/list"))
    spent = [
        client.send("prompts/list"),
        client.send("prompts/get", {"name": "no such"}),
        client.send("prompts/get", {"name": "fail"}),
        client.send("tools/call", {"name": "picture"}),
        client.send("tools/call", {"name": "greet", "arguments": {"name": 1}}),
        client.send("tools/call", {"name": "talk"}),
        client.send("tools/call", {"name": "talk", "requestState": "forged"}),
        client.send("tools/call", {"name": "talk", "inputResponses": None}),
        client.send("prompts/get", {"name": "asking"}),
    ]
    assert [before - left(answer) for answer in spent] == list(range(1, 10))


def test_a_spent_budget_asks_it_nothing(host: None, transactional_db: None, tools: Any) -> None:
    client = Client(machine=factories.make_machine(scopes=[probe.READ], budget=20))
    for _ in range(20):
        client.result("prompts/list")
    assert client.send("prompts/list").json()["error"]["code"] == 429
    assert client.refusal("picture")["code"] == "rate_limited"
    assert len(hosted.ASKED) == 20


@pytest.mark.parametrize("method", OF_A_PROVIDER)
def test_a_stranger_gets_nothing_of_it(client: Client, visitor: Machine, method: str) -> None:
    assert Client(machine=Machine()).send(method, path="/mcp").status_code == 401
    assert fault(Client(machine=visitor).send(method)) == (404, -32601)
    assert Client(machine=visitor).refusal("picture")["code"] == "not_found"
    assert "picture" not in [tool["name"] for tool in Client(machine=visitor).result("tools/list")["tools"]]
    assert hosted.ASKED == []


def test_a_key_without_its_scope_is_refused(client: Client) -> None:
    other = Client(machine=factories.make_machine(scopes=[probe.WRITE]))
    refused = other.send("prompts/list").json()["error"]
    assert (refused["code"], refused["data"]["scope"]) == (403, probe.READ)
    assert other.refusal("picture")["code"] == "forbidden"
    assert "picture" not in [tool["name"] for tool in other.result("tools/list")["tools"]]
    assert hosted.ASKED == []


def test_a_key_whose_owner_lost_the_permission_is_refused(host: None, transactional_db: None, tools: Any) -> None:
    owner = factories.make_owner(permissions=[probe.VIEW])
    client = Client(machine=factories.make_machine(owner=owner, scopes=[probe.READ]))
    client.result("prompts/list")
    factories.revoke(owner, probe.VIEW)
    assert client.send("prompts/list").json()["error"]["code"] == 403


def test_a_closed_server_is_closed_for_it_too(client: Client) -> None:
    factories.set_setting("api_admin_enabled", False)
    assert client.send("prompts/list").json()["error"]["data"]["code"] == "api_disabled"
    assert client.refusal("picture")["code"] == "api_disabled"
    assert hosted.ASKED == []


def test_it_is_told_who_asks_and_nothing_of_the_envelope(client: Client) -> None:
    client.result("prompts/get", {"name": "summary", "_meta": {"progressToken": 1}})
    (request,) = hosted.ASKED
    assert request.params == {"name": "summary"}
    assert request.actor.key is not None
    assert request.scopes == {probe.READ, probe.WRITE}
    assert request.capabilities == {"elicitation": {}}


def test_its_tools_are_listed_as_reads_behind_the_modules(era: Client) -> None:
    listed = era.result("tools/list")["tools"]
    own = next(tool for tool in listed if tool["name"] == "picture")
    hints = {
        f"{hint}Hint": hint in ("readOnly", "idempotent")
        for hint in ("readOnly", "destructive", "idempotent", "openWorld")
    }
    assert own["annotations"] == {"title": "picture", **hints}
    assert own["inputSchema"]["additionalProperties"] is False
    assert listed[-1]["name"] == "huge"


def test_its_tools_answer_other_content(era: Client) -> None:
    assert era.call("picture")["content"][0]["type"] == "image"
    assert text(era.call("greet", {"name": "Ada"})) == "Hello, Ada!"


def test_its_tools_are_asked_alike_where_the_client_wants_progress(era: Client) -> None:
    asked = {"name": "greet", "arguments": {"name": "Ada"}, "_meta": {"progressToken": "mine"}}
    answer = era.send("tools/call", asked, headers={"Accept": "application/json, text/event-stream"})
    assert text(answer.json()["result"]) == "Hello, Ada!"
    assert left(answer) == left(era.send("tools/list")) + 1


@pytest.mark.parametrize("arguments", [{}, {"name": 1}, {"name": "a", "more": 1}])
def test_arguments_that_do_not_fit_never_reach_it(era: Client, arguments: dict[str, Any]) -> None:
    refused = era.refusal("greet", arguments)
    assert refused["code"] == "validation_failed"
    assert refused["errors"]
    assert hosted.ASKED == []


@pytest.mark.parametrize("name", ["probe_echo", "probe.echo", "probe_store", "probe.store"])
def test_a_tool_of_a_module_is_never_its(client: Client, name: str) -> None:
    client.result("tools/call", {"name": name, "arguments": {}})
    names = [tool["name"] for tool in client.result("tools/list")["tools"]]
    assert (names.count("probe_echo"), names.count("probe.store")) == (1, 0)
    assert hosted.ASKED == []


def test_a_tool_of_a_module_that_is_off_is_not_its_either(client: Client) -> None:
    factories.set_setting("disabled_modules", ["probe"])
    assert client.refusal("probe_echo")["code"] == "module_disabled"
    assert hosted.ASKED == []


def test_it_can_write_nothing(client: Client) -> None:
    before = Entry.objects.count()
    assert client.refusal("write")["code"] == "internal_error"
    assert not Setting.objects.filter(name="written").exists()
    assert Entry.objects.count() == before


@pytest.mark.parametrize("name", ["fail", "refuse", "odd", "huge"])
def test_what_it_raises_or_should_not_say_is_an_error_without_details(era: Client, name: str) -> None:
    with capture_logs() as logs:
        refused = era.refusal(name)
    assert refused["code"] == "internal_error"
    assert "secret" not in json.dumps(refused)
    assert [line["tool"] for line in logs if line["event"] == "call_failed"] == ["tools/call"]


def test_a_method_that_raises_is_an_internal_error(era: Client) -> None:
    answer = era.send("prompts/get", {"name": "fail"})
    assert fault(answer) == (200, -32603)
    assert "secret" not in answer.content.decode()
    assert answer.json()["error"]["data"]["request_id"]


def test_what_it_does_not_know_is_invalid_and_says_what(era: Client) -> None:
    answer = era.send("prompts/get", {"name": "no such"})
    assert fault(answer) == (400 if era.version == MODERN else 200, -32602)
    assert answer.json()["error"]["data"] == {"name": "no such"}


def test_it_asks_and_keeps_what_was_said(client: Client) -> None:
    first = client.call("talk")
    assert first["resultType"] == "input_required"
    assert first["inputRequests"]["step"]["params"]["message"] == "Who?"
    second = client.call("talk", **said("Ada"), requestState=first["requestState"])
    assert second["requestState"] != first["requestState"]
    last = client.call("talk", **said("Grace"), requestState=second["requestState"])
    assert (last["resultType"], text(last)) == ("complete", "Ada and Grace")


def said(name: str) -> dict[str, Any]:
    return {"inputResponses": {"step": {"action": "accept", "content": {"name": name}}}}


def test_a_state_is_good_for_its_caller_and_its_request_alone(client: Client) -> None:
    state = client.call("talk")["requestState"]
    other = Client(machine=factories.make_machine(scopes=[probe.READ]), capabilities={"elicitation": {}})
    asked = len(hosted.ASKED)
    for sender, tool, sent in (
        (client, "talk", f"{state}x"),
        (client, "talk", 5),
        (client, "picture", state),
        (other, "talk", state),
    ):
        answer = sender.send("tools/call", {"name": tool, **said("Eve"), "requestState": sent})
        assert fault(answer) == (400, -32602), (tool, sent)
    assert len(hosted.ASKED) == asked


def test_a_state_ends_after_ten_minutes(client: Client) -> None:
    state = client.call("talk")["requestState"]
    with time_machine.travel(timezone.now() + timedelta(minutes=11), tick=False):
        assert fault(client.send("tools/call", {"name": "talk", "requestState": state})) == (400, -32602)


def test_its_state_is_no_confirmation(client: Client) -> None:
    state = client.call("talk")["requestState"]
    answer = client.send("tools/call", {"name": "probe_act", **said("Eve"), "requestState": state})
    assert fault(answer) == (400, -32602)


@pytest.mark.parametrize("given", [None, [], {"step": 5}, {"step": None}])
def test_odd_answers_never_reach_it(client: Client, given: Any) -> None:
    assert fault(client.send("tools/call", {"name": "talk", "inputResponses": given})) == (400, -32602)
    assert hosted.ASKED == []


@pytest.mark.parametrize("version", ERAS)
def test_a_client_is_not_asked_what_it_did_not_declare(machine: Machine, host: None, version: str) -> None:
    answer = Client(machine=machine, version=version).send("prompts/get", {"name": "asking"})
    assert fault(answer) == (400 if version == MODERN else 200, -32021)
    needed: dict[str, Any] = {"elicitation": {"url": {}}, "roots": {}}
    assert answer.json()["error"]["data"] == {"requiredCapabilities": needed}


def test_forms_do_not_stand_for_pages(machine: Machine, host: None) -> None:
    forms = Client(machine=machine, capabilities={"elicitation": {}, "roots": {}})
    data = forms.send("prompts/get", {"name": "asking"}).json()["error"]["data"]
    assert data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    both = Client(machine=machine, capabilities={"elicitation": {"url": {}}, "roots": {}})
    asked = both.result("prompts/get", {"name": "asking"})
    assert set(asked["inputRequests"]) == {"page", "roots"}
    assert "requestState" not in asked


def test_a_method_that_may_not_ask_is_an_internal_error(client: Client) -> None:
    assert fault(client.send("completion/complete")) == (200, -32603)


@pytest.mark.parametrize("name", ["Grasping", "Twice", "Misspelled", "Unreadable", "broken", "no_such"])
def test_a_provider_that_is_none_stops_the_start(settings: Any, name: str) -> None:
    settings.MCP_PROVIDER = f"tests.api.mcp.hosted.{name}"
    assert [message.id for message in provider.check_provider()] == ["api.E030"]
    with pytest.raises(ImproperlyConfigured):
        provider.current()


def test_the_documented_provider_works(transactional_db: None, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    code = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    module = ModuleType("documented")
    exec(code, vars(module))  # noqa: S102 - our own page
    monkeypatch.setitem(sys.modules, "documented", module)
    settings.MCP_PROVIDER = "documented.Prompts"
    assert provider.check_provider() == []
    client = Client(machine=factories.make_machine(scopes=["catalogue:read"]), capabilities={"elicitation": {}})
    (prompt,) = client.result("prompts/list")["prompts"]
    assert client.result("prompts/get", {"name": prompt["name"]})["messages"]
    assert fault(client.send("prompts/get", {"name": "no such"})) == (400, -32602)
    assert client.call("choose_area")["inputRequests"]["area"]["params"]["message"] == "Which area?"
    answered = {"area": {"action": "accept", "content": {"area": "tools"}}}
    assert text(client.call("choose_area", inputResponses=answered)) == "The area is tools."
    assert client.call("choose_area", inputResponses={"area": {"action": "decline"}})["resultType"] == "input_required"


def test_checks_name_a_scope_of_nobody_and_a_tool_of_a_module(settings: Any, tools: Any) -> None:
    settings.MCP_PROVIDER = "tests.api.mcp.hosted.Homeless"
    assert [message.id for message in provider.check_provider()] == ["api.E031"]
    settings.MCP_PROVIDER = "tests.api.mcp.hosted.Hosted"
    assert [message.id for message in provider.check_provider()] == ["api.E032", "api.E032"]
    settings.MCP_PROVIDER = ""
    assert provider.check_provider() == []
