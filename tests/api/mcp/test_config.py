"""`manage.py mcp_config` (RU-4): what each client reads, and that no key is in it."""

import json
import re
import subprocess
import sys
import tomllib
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import CommandError, call_command

from apps.api import key_text
from apps.api.mcp import clients
from tests.api.factories import Machine
from tests.api.mcp.client import Client

pytestmark = pytest.mark.sqlite

URL = "https://tollhouse.example.org/mcp"

# By each client's own documentation; the second is where the key comes from.
ENTRIES: dict[str, Any] = {
    "claude-code": {
        "mcpServers": {
            "tollhouse": {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${TOLLHOUSE_KEY}"}}
        }
    },
    "claude-desktop": {
        "mcpServers": {
            "tollhouse": {
                "command": "npx",
                "args": ["-y", "mcp-remote", URL, "--header", "Authorization:${AUTHORIZATION}"],
                "env": {"AUTHORIZATION": "Bearer YOUR_KEY"},
            }
        }
    },
    "codex": {"mcp_servers": {"tollhouse": {"url": URL, "bearer_token_env_var": "TOLLHOUSE_KEY"}}},
    "cursor": {"mcpServers": {"tollhouse": {"url": URL, "headers": {"Authorization": "Bearer ${env:TOLLHOUSE_KEY}"}}}},
    "gemini": {"mcpServers": {"tollhouse": {"httpUrl": URL, "headers": {"Authorization": "Bearer ${TOLLHOUSE_KEY}"}}}},
    "vscode": {
        "inputs": [{"type": "promptString", "id": "tollhouse-key", "description": "API key", "password": True}],
        "servers": {
            "tollhouse": {"type": "http", "url": URL, "headers": {"Authorization": "Bearer ${input:tollhouse-key}"}}
        },
    },
    "windsurf": {
        "mcpServers": {"tollhouse": {"serverUrl": URL, "headers": {"Authorization": "Bearer ${env:TOLLHOUSE_KEY}"}}}
    },
    "zed": {"context_servers": {"tollhouse": {"url": URL, "headers": {"Authorization": "Bearer YOUR_KEY"}}}},
}


@pytest.fixture(autouse=True)
def _address(settings: Any) -> None:
    settings.BASE_URL = "https://tollhouse.example.org"


def printed(*arguments: str) -> str:
    out = StringIO()
    call_command("mcp_config", *arguments, stdout=out, stderr=StringIO())
    return out.getvalue()


def parsed(client: str, *arguments: str) -> Any:
    text = printed("--client", client, *arguments)
    return tomllib.loads(text) if client == "codex" else json.loads(text)


def test_every_client_is_expected_here() -> None:
    assert set(ENTRIES) == set(clients.CLIENTS)


@pytest.mark.parametrize("client", ENTRIES)
def test_the_entry_is_what_the_client_reads_and_holds_no_key(client: str) -> None:
    assert parsed(client) == ENTRIES[client]
    assert not key_text.PATTERN.search(printed("--client", client))


@pytest.mark.parametrize("client", ENTRIES)
def test_the_entry_of_visitors_asks_for_no_key(client: str) -> None:
    text = json.dumps(parsed(client, "--public"))
    assert f"{URL}/public" in text
    assert '"tollhouse-public"' in text
    assert not [word for word in ("Authorization", "KEY", "inputs", "env", "header") if word in text]


def test_the_how_to_shows_each_entry_as_it_is_printed() -> None:
    shown = re.findall(r"```(json|toml)\n(.*?)```", Path("docs/how-to/connect-mcp.md").read_text(), re.DOTALL)
    entries = [json.loads(text) if language == "json" else tomllib.loads(text) for language, text in shown]
    assert [name for name, entry in ENTRIES.items() if entry not in entries] == []


def test_without_a_client_it_is_the_form_that_most_of_them_read() -> None:
    assert json.loads(printed()) == ENTRIES["claude-code"]


def test_an_unknown_client_is_told_the_known_ones() -> None:
    with pytest.raises(CommandError) as refused:
        printed("--client", "telnet")
    assert all(client in str(refused.value) for client in ENTRIES)


def test_a_server_without_an_address_prints_nothing(settings: Any) -> None:
    settings.BASE_URL = ""
    with pytest.raises(CommandError, match="BASE_URL"):
        printed()


def test_the_printed_address_and_header_are_answered(machine: Machine) -> None:
    entry = json.loads(printed())["mcpServers"]["tollhouse"]
    header = entry["headers"]["Authorization"].replace("${TOLLHOUSE_KEY}", str(machine.text))
    answer = Client(machine=Machine()).send(
        "tools/list", path=urlsplit(entry["url"]).path, headers={"Authorization": header}
    )
    assert answer.json()["result"]["tools"]


def test_only_the_entry_goes_down_the_pipe(process_environment: dict[str, str]) -> None:
    command = [sys.executable, "manage.py", "mcp_config", "--client", "codex"]
    environment = {**process_environment, "BASE_URL": "https://tollhouse.example.org"}
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert tomllib.loads(ran.stdout) == ENTRIES["codex"]
    assert "~/.codex/config.toml" in ran.stderr
