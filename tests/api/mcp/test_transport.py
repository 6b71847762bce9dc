"""The HTTP of `/mcp` (MC-1, PR-1): what is a problem, what is JSON-RPC, what is the result of a tool."""

import json
from typing import Any

import pytest
from django.utils.functional import lazy

from apps.api.models import Confirmation
from tests.api import factories, hostile, problem
from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, MODERN, Client, left
from tests.api.shop import Shop

pytestmark = pytest.mark.sqlite

KEY = "th_live_" + "0" * 12 + "_" + "0" * 38


@pytest.fixture(params=ERAS)
def client(request: pytest.FixtureRequest, machine: Machine) -> Client:
    return Client(machine=machine, version=request.param)


@pytest.fixture
def modern(machine: Machine) -> Client:
    return Client(machine=machine)


def fault(answer: Any, code: int, status: int) -> dict[str, Any]:
    assert (answer.status_code, answer.headers["Content-Type"]) == (status, "application/json"), answer.content
    found: dict[str, Any] = answer.json()
    assert found["error"]["code"] == code, found
    return found


@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
def test_both_spellings_of_the_path_answer_without_a_redirect(client: Client, path: str) -> None:
    assert client.send("tools/list", path=path).json()["result"]["tools"]


@pytest.mark.parametrize("path", ["/mcp/public", "/mcp/public/"])
def test_visitors_list_and_call_their_own_tools(visitor: Machine, path: str) -> None:
    client = Client(machine=visitor)
    listed = client.send("tools/list", path=path).json()["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["probe_look"]
    assert client.call("probe_look", {"text": "hi"})["structuredContent"] == {"text": "hi", "scope": None}


@pytest.mark.parametrize("method", ["get", "head", "delete", "put", "options"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/", "/mcp/public"])
def test_only_post_is_allowed(db: None, machine: Machine, method: str, path: str) -> None:
    answer = getattr(machine.client, method)(path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "origin", ["https://evil.example.org", "null", "file://", "http://testserver.evil.example.org", "http://["]
)
def test_a_page_of_another_site_is_refused(modern: Client, origin: str) -> None:
    problem.of(modern.send("tools/list", headers={"Origin": origin}), 403, "forbidden")


def test_a_page_of_this_site_is_answered(modern: Client) -> None:
    assert modern.send("tools/list", headers={"Origin": "http://testserver"}).status_code == 200


@pytest.mark.parametrize("accept", ["*/*", "application/json", "text/event-stream", ""])
def test_any_accept_is_answered(modern: Client, accept: str) -> None:
    assert modern.send("tools/list", headers={"Accept": accept}).status_code == 200


def test_a_missing_or_wrong_key_is_401(client: Client, subtests: pytest.Subtests) -> None:
    for text in (None, KEY, "nonsense"):
        with subtests.test(text):
            answer = Client(machine=Machine(text=text), version=client.version).send(
                "tools/call", {"name": "x"}, path="/mcp"
            )
            problem.of(answer, 401, "unauthorized")
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_a_doubled_header_and_credentials_at_the_wrong_place_are_problems(modern: Client, machine: Machine) -> None:
    doubled = {"Authorization": f"Bearer {machine.text}, Bearer {machine.text}"}
    problem.of(modern.send("tools/list", headers=doubled), 400, "bad_request")
    problem.of(modern.send("tools/list", path="/mcp?token=x"), 400, "credential_in_url")
    problem.of(modern.send("tools/call", {"name": "probe_echo", "arguments": {"text": KEY}}), 400, "credential_in_body")
    problem.of(modern.send("tools/list", {"_meta": {"note": KEY}}), 400, "credential_in_body")


def test_a_key_in_a_message_is_marked_as_exposed(modern: Client, machine: Machine) -> None:
    other, text = factories.make_key()
    modern.send("tools/call", {"name": "probe_echo", "arguments": {"text": text}})
    other.refresh_from_db()
    assert other.exposed_at is not None


def test_too_large_and_not_json_are_problems(modern: Client) -> None:
    problem.of(modern.post(b" " * 2_000_001), 413, "body_too_large")
    problem.of(modern.post(b"{}", content_type="text/plain"), 415, "unsupported_media_type")


@pytest.mark.parametrize(
    "name", [name for name in hostile.UNREADABLE if name not in ("a list", "a text", "null", "a number")]
)
def test_what_is_no_json_is_a_parse_error(modern: Client, name: str) -> None:
    found = fault(modern.post(hostile.UNREADABLE[name]), -32700, 400)
    assert found["id"] is None
    assert found["error"]["data"]["code"] == "invalid_json"


@pytest.mark.parametrize(
    "body",
    [
        [],
        [{"jsonrpc": "2.0", "id": 1, "method": "ping"}],
        "text",
        None,
        1,
        {},
        {"jsonrpc": "1.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "method": 5},
        {"jsonrpc": "2.0", "id": None, "method": "ping"},
        {"jsonrpc": "2.0", "id": True, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1.5, "method": "ping"},
        {"jsonrpc": "2.0", "id": {}, "method": "ping"},
        {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []},
    ],
)
def test_a_batch_and_what_is_no_message_are_invalid_requests(client: Client, body: Any) -> None:
    found = fault(client.post(json.dumps(body), headers={"MCP-Protocol-Version": client.version}), -32600, 400)
    assert found["id"] in (None, 1)


def test_a_notification_is_accepted_and_costs_nothing(client: Client) -> None:
    before = left(client.send("tools/list"))
    heard = client.post({"jsonrpc": "2.0", "method": "notifications/initialized"})
    assert (heard.status_code, heard.content) == (202, b"")
    assert left(client.send("tools/list")) == before - 1


def test_an_unknown_method_is_not_found(client: Client) -> None:
    for method in ("resources/list", "prompts/list", "logging/setLevel", "no/such"):
        found = fault(client.send(method, id="mine"), -32601, 404 if client.version == MODERN else 200)
        assert found["id"] == "mine"


def test_ids_come_back_as_they_were(client: Client) -> None:
    for own in ("text", "ünï", 0, -7, 2**53):
        assert client.send("tools/list", id=own).json()["id"] == own


def test_every_method_costs_one_and_a_call_its_price(machine: Machine) -> None:
    client = Client(machine=machine, version="2025-11-25")
    before = left(client.send("ping"))
    spent = [
        client.send("initialize", {"protocolVersion": "2025-11-25"}),
        client.send("tools/list"),
        client.send("no/such"),
        client.send("tools/list", {"cursor": "x"}),
        client.send("tools/call", {"name": "probe_search", "arguments": {"terms": ["a", "b", "c"]}}),
        client.send("tools/call", {"name": "no_such"}),
        client.post(b"[]"),
        client.post(b"{"),
    ]
    assert [before - left(answer) for answer in spent] == [1, 2, 3, 4, 7, 8, 9, 10]


def test_a_visitor_pays_alike(visitor: Machine) -> None:
    client = Client(machine=visitor)
    before = left(client.send("tools/list", REMOTE_ADDR="203.0.113.77"))
    spent = [
        client.send("server/discover", REMOTE_ADDR="203.0.113.77"),
        client.send("tools/call", {"name": "probe_look"}, REMOTE_ADDR="203.0.113.77"),
        client.send("tools/call", {"name": "no_such"}, REMOTE_ADDR="203.0.113.77"),
        client.post(b"{", REMOTE_ADDR="203.0.113.77"),
    ]
    assert [before - left(answer) for answer in spent] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("setting", "status", "code"),
    [("api_admin_enabled", 403, "api_disabled"), ("maintenance_mode", 503, "maintenance")],
)
def test_a_shut_gate_answers_each_method_in_its_own_form(client: Client, setting: str, status: int, code: str) -> None:
    factories.set_setting(setting, setting == "maintenance_mode")
    assert client.refusal("probe_echo")["code"] == code
    found = fault(client.send("tools/list", id="mine"), status, 200)
    assert (found["id"], found["error"]["data"]["code"]) == ("mine", code)
    assert client.post({"jsonrpc": "2.0", "method": "notifications/cancelled"}).status_code == 202
    assert fault(client.post(b"{"), status, 200)["id"] is None


@pytest.mark.parametrize("era", ERAS)
def test_a_call_refused_at_the_door_has_the_form_of_its_revision(machine: Machine, era: str) -> None:
    factories.set_setting("maintenance_mode", True)
    client = Client(machine=machine, version=era)
    assert_form(client.call("probe_echo"), era)


LARGE = {"jsonrpc": "2.0", "id": 1, "method": "ping", "more": "x" * 300_000}


def test_a_large_message_of_a_visitor_is_paid_before_it_is_read_and_once(visitor: Machine) -> None:
    client = Client(machine=visitor, version="2025-11-25")
    factories.set_setting("api_network_budget", 20)
    before = left(client.send("ping"))
    look = {"name": "probe_look", "arguments": {"text": "x" * 300_000}}
    spent = [
        client.post(LARGE),
        client.post({**LARGE, "method": "tools/list"}),
        client.post({**LARGE, "method": "no/such"}),
        client.post({**LARGE, "method": "tools/call", "params": look}),
        client.post(b"{" * 300_000),
    ]
    assert [before - left(answer) for answer in spent] == [1, 2, 3, 4, 5]
    assert client.post({**LARGE, "id": 2}).json()["id"] == 2
    while client.send("ping").json().get("result") is not None:
        pass
    found = fault(client.post(LARGE), 429, 200)
    assert (found["id"], found["error"]["data"]["code"]) == (None, "rate_limited")
    assert fault(client.post({**LARGE, "more": ""}), 429, 200)["id"] == 1


def test_where_visitors_are_not_let_in_their_large_messages_stay_unread(visitor: Machine) -> None:
    factories.set_setting("api_public_enabled", False)
    assert fault(Client(machine=visitor).post(LARGE), 403, 200)["id"] is None
    assert fault(Client(machine=visitor).post({**LARGE, "more": ""}), 403, 200)["id"] == 1


def test_a_crash_outside_of_the_gate_keeps_the_form_of_the_protocol(shop: Shop) -> None:
    crashes = False

    def title() -> str:
        if crashes:
            raise RuntimeError("a secret")
        return "Run"

    machine = shop.write(lambda given, ctx: {}, title=lazy(title, str)(), danger="always")
    crashes = True
    for era in ERAS:
        answer = Client(machine=machine, version=era).send("tools/list", id="mine")
        found = fault(answer, 500, 200)
        assert (found["id"], found["error"]["data"]["code"]) == ("mine", "internal_error")
        assert found["error"]["data"]["retry"] == "never"
        assert "RateLimit" in answer.headers
        assert b"secret" not in answer.content
    asking = Client(machine=machine, capabilities={"elicitation": {}})
    assert asking.refusal("shop_run")["code"] == "internal_error"
    assert Confirmation.objects.count() == 1


def assert_form(refused: dict[str, Any], era: str) -> None:
    assert refused["isError"] is True
    assert refused.get("resultType") == ("complete" if era == MODERN else None)
    assert ("_meta" in refused) is (era == MODERN)


def test_a_spent_budget_is_a_refusal_that_keeps_the_session(tools: Any, transactional_db: None) -> None:
    for version in ERAS:
        client = Client(machine=factories.make_machine(scopes=["probe:read"], budget=20), version=version)
        for _ in range(20):
            client.result("tools/list")
        answer = client.send("tools/call", {"name": "probe_echo"})
        assert answer.status_code == 200
        assert json.loads(answer.json()["result"]["content"][0]["text"])["code"] == "rate_limited"
        assert int(answer.headers["Retry-After"]) > 0
        assert fault(client.send("tools/list"), 429, 200)["error"]["data"]["retry"] == "later"
        assert fault(client.send("no/such"), 429, 200)
        assert fault(client.post(b"["), 429, 200)["id"] is None
        assert_form(client.result("tools/call", {"name": "probe_echo", "arguments": []}), version)


def test_a_network_that_fails_too_often_is_429(modern: Client) -> None:
    stranger = Client(machine=Machine(text=KEY))
    answers = [stranger.send("tools/call", {"name": "x"}, REMOTE_ADDR="203.0.113.9") for _ in range(60)]
    problem.of(answers[0], 401, "unauthorized")
    problem.of(answers[-1], 429, "rate_limited")


@pytest.mark.parametrize(
    "path",
    [
        "oauth-protected-resource",
        "oauth-protected-resource/mcp",
        "oauth-authorization-server",
        "oauth-authorization-server/mcp/",
        "openid-configuration",
    ],
)
def test_there_is_no_authorization_server_and_it_is_said_in_json(db: None, machine: Machine, path: str) -> None:
    answer = machine.client.get(f"/.well-known/{path}")
    assert answer.status_code == 404
    assert answer.json()["code"] == "not_found"


def test_the_answer_names_its_request_and_is_not_stored(modern: Client) -> None:
    answer = modern.send("tools/list", headers={"X-Request-ID": "mine"})
    assert answer.headers["X-Request-ID"] == "mine"
    assert answer.headers["Cache-Control"] == "no-store"
    problem.of(modern.machine.client.get("/mcp/nowhere"), 404, "not_found")
