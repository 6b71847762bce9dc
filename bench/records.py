"""SP-2, the part of the idempotency records: a keyed write with millions of them against the same one with none.

Both tables exist at once and take the name in turns, so that the rounds alternate.
"""

import time

from django.db import connection

from bench import load, writes
from bench.figures import Figure, median
from bench.load import Round
from bench.server import Server
from bench.world import World

CALLERS = 1_000
LIMIT = 1.2
# A round leaves calls behind whose answers nobody waits for; they still find the table.
DRAIN_SECONDS = 1

# Finished over the last two days by many callers. In the order of every index, so that the fill takes minutes and not hours;
# the identifiers are spread over their whole space, so that a new one lands anywhere.
_FILL = """
INSERT INTO {table} (uuid, caller, tool, key, input_hash, state, attempt, external, status, body, actor_name, request_id,
    created_at, finished_at)
SELECT (lpad(to_hex(n * 4294967296 / {records}), 8, '0') || '-0000-4000-8000-000000000000')::uuid,
    'key:' || (lpad(to_hex(n / ({records} / {callers}) * (4294967295 / {callers})), 8, '0') || '-0000-4000-8000-000000000000'),
    'catalogue.adjust_stock',
    lpad(to_hex(n), 8, '0') || '-7a1c-4e5b-9d3f-0123456789ab',
    lpad(to_hex(n), 64, '0'), 'done', 1, false, 200,
    convert_to('{{"adjusted":1,"changes":[{{"sku":"LMP-0001","before":20,"after":21}}]}}', 'UTF8'), 'bench',
    lpad(to_hex(n), 32, '0'), moment, moment
FROM (SELECT n, now() - interval '48 hours' * (1 - n::float8 / {records}) AS moment
    FROM generate_series(0::bigint, {records} - 1) AS n) AS numbers
"""


def measure(gate: Server, world: World, *, rounds: int, records: int) -> list[Figure]:
    """CPU of all servers and time by the clock, a call, in alternating rounds."""
    from apps.api.models import IdempotencyRecord

    table = IdempotencyRecord._meta.db_table
    full, empty = f"{table}_full", f"{table}_empty"
    _run(f"CREATE TABLE {full} (LIKE {table} INCLUDING ALL)")
    _run(_FILL.format(table=full, records=records, callers=CALLERS), f"ANALYZE {full}", "CHECKPOINT")
    _run(f"TRUNCATE {table}", f"ALTER TABLE {table} RENAME TO {empty}")
    target = writes.call(gate, world, keyed=True)
    found: dict[str, list[Round]] = {empty: [], full: []}
    for number in range(rounds + 1):
        for name, measured in found.items():
            _run(f"TRUNCATE {empty}", f"ALTER TABLE {name} RENAME TO {table}", f"ANALYZE {table}")
            one = load.run(target, world)
            time.sleep(DRAIN_SECONDS)
            _run(f"ALTER TABLE {table} RENAME TO {name}")
            if number:
                measured.append(one)
    _run(f"DROP TABLE {full}", f"ALTER TABLE {empty} RENAME TO {table}")
    name = f"keyed write with {records:,} records"
    return [
        _figure(f"{name}, CPU of all servers", *(median(one.all_cpu for one in found[key]) for key in (full, empty))),
        _figure(f"{name}, by the clock", *(median(1e6 / one.calls for one in found[key]) for key in (full, empty))),
    ]


def _figure(name: str, many: float, none: float) -> Figure:
    return Figure(
        requirement="SP-2",
        name=name,
        value=many,
        unit="us/call",
        baseline=none,
        ratio=many / none,
        wanted=f"ratio < {LIMIT}",
        met=many / none < LIMIT,
    )


def _run(*statements: str) -> None:
    """Each by itself: CHECKPOINT and ANALYZE have no use for a transaction."""
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
