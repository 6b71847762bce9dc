"""SP-3, single pieces inside this process: CPU of a key's check with its query, and of the validation of 120 rows."""

import time
from collections.abc import Callable
from typing import Any

from bench.figures import Figure, median
from bench.world import World

ROWS = 120
REPEATS = 200


def measure(world: World, *, rounds: int) -> list[Figure]:
    """Milliseconds of CPU, medians of the rounds."""
    return [
        _piece("check of a key, its query included", _key_check(world), rounds=rounds, limit=0.2),
        _piece(f"validation of {ROWS} rows: schema and types", _validation(), rounds=rounds, limit=0.3),
        _piece(f"step 6 of {ROWS} rows: that, and the input's hash", _step(), rounds=rounds),
    ]


def _piece(name: str, act: Callable[[], object], *, rounds: int, limit: float | None = None) -> Figure:
    act()
    cost = median(_milliseconds(act) for _ in range(rounds))
    if limit is None:
        return Figure(requirement="SP-3", name=name, value=cost, unit="ms CPU")
    return Figure(requirement="SP-3", name=name, value=cost, unit="ms CPU", wanted=f"< {limit} ms", met=cost < limit)


def _milliseconds(act: Callable[[], object]) -> float:
    before = time.process_time()
    for _ in range(REPEATS):
        act()
    return (time.process_time() - before) / REPEATS * 1e3


def _key_check(world: World) -> Callable[[], object]:
    from apps.api import credentials, switches

    def check() -> None:
        facts = credentials.read(world.key)
        assert credentials.verify(world.key, facts, ip="192.0.2.7", switches=switches.parse(facts.settings))

    return check


def _validation() -> Callable[[], object]:
    from apps.api import schemas

    tool, given = _prices()

    def validate() -> None:
        assert not schemas.faults(tool.validator, given)
        tool.form.typed(dict(given))

    return validate


def _step() -> Callable[[], object]:
    from apps.api.call import Call, Entrance
    from apps.api.steps import validation

    tool, given = _prices()
    entrance = Entrance(request_id="bench", ip="192.0.2.7")
    return lambda: validation.validate(
        Call(entrance=entrance, audience="admin", input=given, tool=tool, read_strictly=True)
    )


def _prices() -> tuple[Any, dict[str, Any]]:
    """The tool `catalogue.update_prices` and an input of as many rows."""
    from apps.api import registry
    from apps.catalogue.models import Product

    skus = Product.objects.order_by("sku").values_list("sku", flat=True)[:ROWS]
    given = {"changes": [{"sku": sku, "price": "19.90"} for sku in skus], "reason": "Spring"}
    return registry.current().find("admin", "catalogue.update_prices"), given
