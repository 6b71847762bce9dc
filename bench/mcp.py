"""SP-6: SP-1's read as MCP's `tools/call`, in the handshake era and in 2026-07-28, against the same bare DRF view."""

import json
from typing import Any

from bench import load, reads
from bench.figures import Figure, median, ratio
from bench.load import Round, Target
from bench.server import Server
from bench.world import World

HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
WANTED = 0.7

# What a client of 2026-07-28 says of itself with every request.
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}


def measure(gate: Server, baseline: Server, world: World, *, rounds: int) -> list[Figure]:
    """Calls a second and the CPU of the web server a call, in alternating rounds; REST's read stands beside them."""
    ours = [call(gate, world, version=version) for version in (HANDSHAKE, MODERN)]
    rest, bare = reads.call(gate, world), reads.bare_view(baseline, world)
    expected = json.loads(load.answer(bare)[1])
    for target in ours:
        if json.loads(load.answer(target)[1])["result"]["structuredContent"] != expected:
            raise RuntimeError(f"{target.name} and the baseline answer differently.")
    found = load.alternate([*ours, rest, bare], world, rounds=rounds)
    return [
        figure
        for target in ours
        for figure in (
            _speed(target.name, found[target.name], found[bare.name]),
            _beside_rest(target.name, found[target.name], found[rest.name]),
        )
    ]


def call(server: Server, world: World, *, version: str) -> Target:
    """The read as a client of that revision sends it."""
    name = "catalogue_get_product"
    params: dict[str, Any] = {"name": name, "arguments": {"sku": world.sku}}
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version}
    if version == MODERN:
        params["_meta"] = _META
        headers |= {"Mcp-Method": "tools/call", "Mcp-Name": name}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    return Target(
        name=f"read over MCP {version}",
        server=server,
        path="/mcp",
        headers={**world.headers(world.key), **headers},
        body=body,
    )


def _speed(name: str, ours: list[Round], bare: list[Round]) -> Figure:
    share = ratio([one.calls for one in ours], [one.calls for one in bare])
    return Figure(
        requirement="SP-6",
        name=name,
        value=median(one.calls for one in ours),
        unit="calls/s",
        baseline=median(one.calls for one in bare),
        ratio=share,
        wanted=f"ratio >= {WANTED} (aim 1.0)",
        met=share >= WANTED,
    )


def _beside_rest(name: str, ours: list[Round], rest: list[Round]) -> Figure:
    """CPU is what the server does; calls a second is that, and how well the two cores share."""
    return Figure(
        requirement="SP-6",
        name=f"its CPU in the web server, beside REST's ({name.rpartition(' ')[2]})",
        value=median(one.server_cpu for one in ours),
        unit="us/call",
        baseline=median(one.server_cpu for one in rest),
        ratio=ratio([one.server_cpu for one in rest], [one.server_cpu for one in ours]),
    )
