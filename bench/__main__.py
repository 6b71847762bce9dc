"""`python -m bench`: every benchmark of SPEC 23 that there is, as a table, or as JSON with `--json`.

It starts a PostgreSQL, a Redis and two web servers of its own and ends them. `--quick` takes fewer rounds: for a look, not for
docs/benchmarks.md. `--full` fills tables with millions of rows, which takes minutes.
"""

import argparse
import sys

from bench import (
    chat_pages,
    cpu,
    figures,
    load,
    machine,
    mcp,
    pieces,
    queries,
    reads,
    records,
    sockets,
    writes,
)
from bench import world as worlds
from bench.figures import Figure
from bench.server import THREADS, Server
from bench.world import World

FEW, MANY = 100_000, 10_000_000


def main() -> int:
    """Measure and print; the exit code is 0 however the figures turn out, since other work on the machine moves them."""
    options = _options()
    if options.part == "page":
        from bench import chat_browser  # for the browser that nothing else here needs

        print(figures.table(chat_browser.measure()))
        return 0
    if not load.available():
        sys.stderr.write("The load generator wrk is not installed (Debian: apt-get install wrk).\n")
        return 1
    world = worlds.build()
    size = machine.describe(world)
    rounds, found = 2 if options.quick else options.rounds, []
    if options.part != "chats":
        found += _gate(world, rounds=rounds, many=MANY if options.full else FEW)
    if options.part != "gate":
        found += _chats(world, rounds=rounds)
    if options.json:
        print(figures.document(size, found))
    else:
        print(", ".join(f"{name} {value}" for name, value in size.items()))
        print(
            f"granian: 1 WSGI worker, {THREADS} threads; wrk: {load.CONNECTIONS} connections, {load.SECONDS} s a round\n"
        )
        print(figures.table(found))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--quick", action="store_true", help="two rounds instead of --rounds")
    parser.add_argument("--full", action="store_true", help=f"{MANY:,} records instead of {FEW:,}; takes minutes")
    parser.add_argument("--part", choices=["all", "gate", "chats", "page"], default="all", help="what to measure (all)")
    parser.add_argument("--rounds", type=int, default=7, help="that count, of each measurement (7)")
    return parser.parse_args()


def _chats(world: World, *, rounds: int) -> list[Figure]:
    world.pin(cpu.halves()[1])
    with Server("config.wsgi:application", world.folder / "pages.log") as pages:
        found = chat_pages.measure(pages, world, rounds=rounds)
    return found + sockets.measure(world)


def _gate(world: World, *, rounds: int, many: int) -> list[Figure]:
    found = [*queries.measure(world), *writes.count(world), *pieces.measure(world, rounds=rounds)]
    world.pin(cpu.halves()[1])
    with (
        Server("config.wsgi:application", world.folder / "gate.log") as gate,
        Server("bench.baseline.wsgi:application", world.folder / "baseline.log") as baseline,
    ):
        found += reads.floods(gate, world, rounds=rounds)
        found = reads.measure(gate, baseline, world, rounds=rounds) + found
        found += mcp.measure(gate, baseline, world, rounds=rounds)
        found += writes.measure(gate, baseline, world, rounds=rounds)
        return found + records.measure(gate, world, rounds=rounds, records=many)


if __name__ == "__main__":
    sys.exit(main())
