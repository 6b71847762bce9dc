"""The revisions (MC-1): the handshake, and 2026-07-28 where each request says everything itself."""

import base64
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.api.factories import Machine
from tests.api.mcp.client import ERAS, MODERN, Client

pytestmark = pytest.mark.sqlite

META = "io.modelcontextprotocol/"
HANDSHAKE = ERAS[:-1]


@pytest.fixture
def modern(machine: Machine) -> Client:
    return Client(machine=machine)


def code(answer: Any) -> tuple[int, int]:
    return answer.status_code, answer.json()["error"]["code"]


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [
        *zip(HANDSHAKE, HANDSHAKE, strict=True),
        ("2024-11-05", HANDSHAKE[-1]),
        (MODERN, HANDSHAKE[-1]),
        ("9", HANDSHAKE[-1]),
    ],
)
def test_the_handshake_agrees_on_a_revision(machine: Machine, wanted: str, agreed: str) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": wanted, "capabilities": {}},
    }
    answer = Client(machine=machine).post(body)
    result = answer.json()["result"]
    assert result["protocolVersion"] == agreed
    assert result["capabilities"] == {"tools": {"listChanged": False}}
    assert "confirm_token" in result["instructions"]
    assert "pending_approval" in result["instructions"]
    assert "Mcp-Session-Id" not in answer.headers


def test_the_server_says_the_version_of_the_project(machine: Machine) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    server = Client(machine=machine).post(body).json()["result"]["serverInfo"]
    assert server["version"] == tomllib.loads(Path("pyproject.toml").read_text())["project"]["version"]


def test_a_handshake_without_a_version_is_invalid(machine: Machine) -> None:
    answer = Client(machine=machine).post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    assert code(answer) == (200, -32602)


def test_without_a_handshake_or_a_header_a_request_is_answered(machine: Machine) -> None:
    client = Client(machine=machine)
    assert client.post({"jsonrpc": "2.0", "id": 1, "method": "ping"}).json() == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {},
    }
    assert client.post({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": None}).json()["result"]["tools"]


@pytest.mark.parametrize("version", HANDSHAKE)
def test_the_results_of_the_handshake_eras_have_nothing_of_the_later_one(machine: Machine, version: str) -> None:
    client = Client(machine=machine, version=version)
    assert set(client.result("tools/list")) == {"tools"}
    assert set(client.call("probe_echo")) == {"content", "structuredContent", "isError"}


def test_discover_says_what_the_server_can(modern: Client) -> None:
    result = modern.result("server/discover")
    assert result["supportedVersions"][0] == MODERN
    assert result["resultType"] == "complete"
    assert result["cacheScope"] == "private"
    assert result["ttlMs"] >= 0
    assert result["_meta"][f"{META}serverInfo"]["name"] == "tollhouse"
    assert "confirm_token" in result["instructions"]


def test_visitors_are_told_nothing_of_approvals(visitor: Machine) -> None:
    assert "approval" not in Client(machine=visitor).result("server/discover")["instructions"]


def test_results_say_their_type(modern: Client) -> None:
    listed = modern.result("tools/list")
    assert (listed["resultType"], listed["cacheScope"]) == ("complete", "private")
    assert "nextCursor" not in listed
    assert modern.call("probe_echo")["resultType"] == "complete"
    assert modern.call("no_such")["resultType"] == "complete"


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel"])
def test_methods_of_the_handshake_are_gone(modern: Client, method: str) -> None:
    assert code(modern.send(method)) == (404, -32601)


@pytest.mark.parametrize("missing", ["protocolVersion", "clientCapabilities", ""])
def test_a_request_without_its_meta_is_invalid(modern: Client, missing: str) -> None:
    body, headers = modern.message("server/discover")
    if missing:
        del body["params"]["_meta"][META + missing]
    else:
        del body["params"]
    answer = modern.post(body, headers=headers)
    assert code(answer) == (400, -32602)
    assert answer.json()["id"] == body["id"]


def test_a_client_need_not_say_who_it_is(modern: Client) -> None:
    body, headers = modern.message("server/discover")
    del body["params"]["_meta"][f"{META}clientInfo"]
    assert modern.post(body, headers=headers).status_code == 200


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MCP-Protocol-Version", None),
        ("MCP-Protocol-Version", "2026-07-29"),
        ("MCP-Protocol-Version", "2025-11-25"),
        ("MCP-Protocol-Version", "2026-07-28, 2026-07-28"),
        ("Mcp-Method", None),
        ("Mcp-Method", "tools/list"),
        ("Mcp-Name", None),
        ("Mcp-Name", "probe_store"),
        ("Mcp-Name", "probe.echo"),
        ("Mcp-Name", "=?base64?broken?="),
        ("Mcp-Name", "probe_echo, probe_echo"),
    ],
)
def test_headers_and_body_must_say_the_same(modern: Client, name: str, value: str | None) -> None:
    body, headers = modern.message("tools/call", {"name": "probe_echo"})
    del headers[name]
    if value is not None:
        headers[name] = value
    assert code(modern.post(body, headers=headers)) == (400, -32020)


def test_a_name_may_come_in_base64(modern: Client) -> None:
    encoded = f"=?base64?{base64.b64encode(b'probe_echo').decode()}?="
    assert not modern.result("tools/call", {"name": "probe_echo"}, headers={"Mcp-Name": encoded})["isError"]


def test_an_unknown_revision_is_told_the_known_ones(modern: Client) -> None:
    body, headers = modern.message("server/discover")
    body["params"]["_meta"][f"{META}protocolVersion"] = "v999"
    answer = modern.post(body, headers={**headers, "MCP-Protocol-Version": "v999"})
    assert code(answer) == (400, -32022)
    assert answer.json()["error"]["data"] == {"supported": [MODERN, *reversed(HANDSHAKE)], "requested": "v999"}


@pytest.mark.parametrize("method", ["tools/list", "notifications/initialized"])
def test_an_unknown_revision_in_the_header_alone_is_refused(machine: Machine, method: str) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": method}
    if method.startswith("notifications"):
        del body["id"]
    assert code(Client(machine=machine).post(body, headers={"MCP-Protocol-Version": "1999-01-01"})) == (400, -32022)
