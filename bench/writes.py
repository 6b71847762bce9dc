"""SP-1, the write: `catalogue.adjust_stock` with a key's credentials, without and with an idempotency key.

Each call changes one product, and each has another body: products in turn, an amount that counts up.
"""

import json
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

from django.db import transaction
from django.test import Client

from bench import load, queries
from bench.figures import Figure, median
from bench.load import Target
from bench.reads import PATH
from bench.server import Server
from bench.world import HOST, World

TOOL = "catalogue.adjust_stock"
PRODUCTS = 400
AMOUNTS = 1_000

_EACH = """
local skus = {{{skus}}}
local count = 0
function request()
  count = count + 1
  {key}
  local sku = skus[count % #skus + 1]
  local body = string.format('{{"changes":[{{"sku":"%s","delta":%d}}]}}', sku, count % {amounts} + 1)
  return wrk.format(nil, nil, nil, body)
end
"""


def count(world: World) -> list[Figure]:
    """Queries besides the handler's own, and commits, of the second call on a connection: the first one notes the use of the key."""
    own = len(queries.counted(queries.sent(_handler(world))))
    plain, keyed = _caller(world), _caller(world, keyed=True)
    return [
        *_counts("write without an idempotency key", plain, own=own, most=5, commits=1),
        *_counts("write with an idempotency key", keyed, own=own, most=None, commits=2),
    ]


def measure(gate: Server, baseline: Server, world: World, *, rounds: int) -> list[Figure]:
    """Calls a second against a bare view with one INSERT, and against a bare view that does what the handler does."""
    plain, keyed = call(gate, world), call(gate, world, keyed=True)
    insert, same = _bare(baseline, world, "one INSERT"), _bare(baseline, world, "the handler's work")
    found = load.alternate([plain, keyed, insert, same], world, rounds=rounds)
    speed = {name: median(one.calls for one in measured) for name, measured in found.items()}
    return [
        Figure(
            requirement="SP-1",
            name=f"{target.name}, against {bare.name}",
            value=speed[target.name],
            unit="calls/s",
            baseline=speed[bare.name],
            ratio=speed[target.name] / speed[bare.name],
        )
        for bare in (insert, same)
        for target in (plain, keyed)
    ]


def call(server: Server, world: World, *, keyed: bool = False) -> Target:
    """The write through the whole flow; with `keyed`, each call has an idempotency key of its own, in every round."""
    return Target(
        name=f"write with{'' if keyed else 'out'} an idempotency key",
        server=server,
        path=PATH + TOOL,
        headers=world.headers(world.key),
        script=lambda: _each(keyed=keyed),
    )


def _bare(server: Server, world: World, name: str) -> Target:
    path = {"one INSERT": "/changes", "the handler's work": "/stock"}[name]
    headers = {"Host": HOST, "Content-Type": "application/json"}
    return Target(name=f"a bare view: {name}", server=server, path=path, headers=headers, script=_each)


def _each(*, keyed: bool = False) -> str:
    """The part of wrk's script that makes each request; a round's keys begin alike and like no other round's."""
    from apps.catalogue.models import Product

    skus = Product.objects.order_by("sku").values_list("sku", flat=True)[:PRODUCTS]
    key = f'wrk.headers["Idempotency-Key"] = "{uuid4()}-" .. count' if keyed else ""
    return _EACH.format(skus=", ".join(json.dumps(sku) for sku in skus), key=key, amounts=AMOUNTS)


def _counts(name: str, act: Callable[[], object], *, own: int, most: int | None, commits: int) -> Sequence[Figure]:
    act()
    sent = queries.sent(act)
    asked, done = len(queries.counted(sent)) - own, _commits(sent)
    return [
        Figure(
            requirement="SP-1",
            name=f"{name}: queries besides the handler's own",
            value=asked,
            unit="",
            wanted="" if most is None else f"<= {most}",
            met=None if most is None else asked <= most,
        ),
        Figure(
            requirement="SP-1",
            name=f"{name}: commits",
            value=done,
            unit="",
            wanted=f"<= {commits}",
            met=done <= commits,
        ),
    ]


def _commits(sent: Sequence[str]) -> int:
    """Each COMMIT, and each change outside a transaction, which commits by itself; a query alone there changes nothing."""
    found, inside = 0, False
    for statement in sent:
        verb = statement.split(maxsplit=1)[0].upper()
        if verb in ("BEGIN", "COMMIT", "ROLLBACK"):
            inside = verb == "BEGIN"
        found += verb == "COMMIT" or (not inside and verb in ("INSERT", "UPDATE", "DELETE"))
    return found


def _caller(world: World, *, keyed: bool = False) -> Callable[[], None]:
    client = Client(headers=world.headers(world.key), SERVER_NAME=HOST)

    def write() -> None:
        headers = {"Idempotency-Key": str(uuid4())} if keyed else None
        body = json.dumps({"changes": [{"sku": world.sku, "delta": 1}]})
        answer = client.post(PATH + TOOL, body, content_type="application/json", secure=True, headers=headers)
        assert answer.status_code == 200, answer.content

    return write


def _handler(world: World) -> Callable[[], None]:
    """The tool's handler alone; what it logs is written by the gate, and counts as the gate's."""
    from apps.api import registry
    from apps.catalogue.shapes import StockChange

    tool = registry.current().find("admin", TOOL)
    assert tool is not None
    handler: Callable[..., Any] = tool.handler
    ctx = SimpleNamespace(request_id="bench", log=lambda *_: None)

    def run() -> None:
        with transaction.atomic():
            handler(ctx, changes=[StockChange(sku=world.sku, delta=1)])

    return run
