"""How the common MCP clients are told of a server, each in the form of its own configuration file.

None of them is given a key: the entry names the environment variable that holds it, or has a placeholder where a client reads none.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

VARIABLE = "TOLLHOUSE_KEY"
PLACEHOLDER = "YOUR_KEY"

Entry = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Server:
    """What a client is told: the name that it shows, the address, and whether a key is needed there."""

    name: str
    url: str
    wants_key: bool


@dataclass(frozen=True, kw_only=True)
class Client:
    """A client: the file that it reads, where it has the key from, and what its entry of a server is."""

    name: str
    title: str
    file: str
    key_from: str
    entry: Callable[[Server], Entry]
    is_toml: bool = False


def text(client: Client, server: Server) -> str:
    """The entry as it stands in the client's file."""
    entry = client.entry(server)
    return _toml(entry) if client.is_toml else json.dumps(entry, ensure_ascii=False, indent=2)


def _remote(server: Server, *, key: str, root: str = "mcpServers", address: str = "url", **more: str) -> Entry:
    """A server with an address and headers: what most clients have, under names of their own."""
    headers = {"headers": {"Authorization": f"Bearer {key}"}} if server.wants_key else {}
    return {root: {server.name: {**more, address: server.url, **headers}}}


def _bridged(server: Server) -> Entry:
    """A program on the client's machine that knows the remote server. No space in its arguments: Windows would split there."""
    arguments, variables = ["-y", "mcp-remote", server.url], {}
    if server.wants_key:
        arguments += ["--header", "Authorization:${AUTHORIZATION}"]
        variables = {"env": {"AUTHORIZATION": f"Bearer {PLACEHOLDER}"}}
    return {"mcpServers": {server.name: {"command": "npx", "args": arguments, **variables}}}


def _codex(server: Server) -> Entry:
    return {
        "mcp_servers": {
            server.name: {"url": server.url, **({"bearer_token_env_var": VARIABLE} if server.wants_key else {})}
        }
    }


def _asking(server: Server) -> Entry:
    """VS Code asks for the key once and keeps it encrypted."""
    wanted = {"type": "promptString", "id": f"{server.name}-key", "description": "API key", "password": True}
    servers = _remote(server, key=f"${{input:{server.name}-key}}", root="servers", type="http")
    return {"inputs": [wanted], **servers} if server.wants_key else servers


def _toml(entry: Entry) -> str:
    """One table of texts for each server; a text of JSON is a basic string of TOML."""
    ((root, servers),) = entry.items()
    return "\n\n".join(
        "\n".join([f"[{root}.{name}]", *(f"{member} = {json.dumps(value)}" for member, value in server.items())])
        for name, server in servers.items()
    )


_ENVIRONMENT = f"the environment variable {VARIABLE}"

CLIENTS = {
    client.name: client
    for client in (
        Client(
            name="claude-code",
            title="Claude Code",
            file=".mcp.json in the project",
            key_from=_ENVIRONMENT,
            entry=partial(_remote, key=f"${{{VARIABLE}}}", type="http"),
        ),
        Client(
            name="claude-desktop",
            title="Claude Desktop",
            file="claude_desktop_config.json (Settings, Developer, Edit Config); it starts mcp-remote with Node",
            key_from=f"the file itself: put it in the place of {PLACEHOLDER}",
            entry=_bridged,
        ),
        Client(
            name="codex",
            title="Codex CLI",
            file="~/.codex/config.toml",
            key_from=_ENVIRONMENT,
            entry=_codex,
            is_toml=True,
        ),
        Client(
            name="cursor",
            title="Cursor",
            file="~/.cursor/mcp.json, or .cursor/mcp.json in the project",
            key_from=_ENVIRONMENT,
            entry=partial(_remote, key=f"${{env:{VARIABLE}}}"),
        ),
        Client(
            name="gemini",
            title="Gemini CLI",
            file="~/.gemini/settings.json, or .gemini/settings.json in the project",
            key_from=_ENVIRONMENT,
            entry=partial(_remote, key=f"${{{VARIABLE}}}", address="httpUrl"),
        ),
        Client(
            name="vscode",
            title="VS Code",
            file=".vscode/mcp.json in the project, or the user's mcp.json",
            key_from="its own question at the first start",
            entry=_asking,
        ),
        Client(
            name="windsurf",
            title="Windsurf",
            file="~/.codeium/windsurf/mcp_config.json",
            key_from=_ENVIRONMENT,
            entry=partial(_remote, key=f"${{env:{VARIABLE}}}", address="serverUrl"),
        ),
        Client(
            name="zed",
            title="Zed",
            file="Zed's settings.json",
            key_from=f"the file itself: put it in the place of {PLACEHOLDER}",
            entry=partial(_remote, key=PLACEHOLDER, root="context_servers"),
        ),
    )
}
