"""SP-1, the read: `catalogue.get_product` with a key through the whole flow, against a bare DRF view with one query.

Also SP-3's floods of refused calls, each against a good call.
"""

import json
from dataclasses import replace

from bench import load
from bench.figures import Figure, median, ratio
from bench.load import Round, Target
from bench.server import Server
from bench.world import HOST, World

PATH = "/api/v1/tools/"
TOOL = "catalogue.get_product"


def measure(gate: Server, baseline: Server, world: World, *, rounds: int) -> list[Figure]:
    """Calls a second and the CPU of the web server a call, in alternating rounds."""
    good, bare = call(gate, world), bare_view(baseline, world)
    if json.loads(load.answer(good)[1]) != json.loads(load.answer(bare)[1]):
        raise RuntimeError("The gate and the baseline answer differently.")
    found = load.alternate([good, bare], world, rounds=rounds)
    ours, theirs = found[good.name], found[bare.name]
    calls, bare_calls = [one.calls for one in ours], [one.calls for one in theirs]
    cpu, bare_cpu = [one.server_cpu for one in ours], [one.server_cpu for one in theirs]
    share = ratio(calls, bare_calls)
    return [
        Figure(
            requirement="SP-1",
            name="read with a key, whole flow",
            value=median(calls),
            unit="calls/s",
            baseline=median(bare_calls),
            ratio=share,
            wanted="ratio >= 0.5 (aim 0.6)",
            met=share >= 0.5,
        ),
        Figure(
            requirement="SP-1",
            name="its CPU in the web server",
            value=median(cpu),
            unit="us/call",
            baseline=median(bare_cpu),
            ratio=ratio(bare_cpu, cpu),
        ),
    ]


def floods(gate: Server, world: World, *, rounds: int) -> list[Figure]:
    """What a refused call costs all servers together: the web server, PostgreSQL and Redis."""
    good = call(gate, world)
    wrong = world.key[:-1] + ("0" if world.key[-1] != "0" else "1")
    refused = [
        _refused(good, "bad checksum", key=wrong),
        replace(_refused(good, "unknown tool", key=world.key), path=PATH + "catalogue.invent_product"),
        _refused(good, "empty budget", key=world.poor_key),
    ]
    found = load.alternate([good, *refused], world, rounds=rounds)
    return [_flood(target, found[target.name], found[good.name]) for target in refused]


def call(server: Server, world: World) -> Target:
    """A good call of the gate."""
    body = json.dumps({"sku": world.sku}).encode()
    return Target(name="good call", server=server, path=PATH + TOOL, headers=world.headers(world.key), body=body)


def bare_view(server: Server, world: World) -> Target:
    """The same product from the baseline."""
    path = f"/products/{world.sku}"
    return Target(name="bare DRF view", server=server, method="GET", path=path, headers={"Host": HOST})


def _refused(good: Target, name: str, *, key: str) -> Target:
    headers = {**good.headers, "Authorization": f"Bearer {key}"}
    return replace(good, name=name, headers=headers, refused=True)


def _flood(target: Target, refused: list[Round], good: list[Round]) -> Figure:
    cost, whole = [one.all_cpu for one in refused], [one.all_cpu for one in good]
    share = ratio(cost, whole)
    return Figure(
        requirement="SP-3",
        name=f"refused, {target.name}: CPU of all servers",
        value=median(cost),
        unit="us/call",
        baseline=median(whole),
        ratio=share,
        wanted="ratio < 0.5",
        met=share < 0.5,
    )
