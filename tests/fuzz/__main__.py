"""A fuzzer, for as long as you let it run: `python -m tests.fuzz reader` or `python -m tests.fuzz http --port 8000 --key th_…`.

`reader` feeds the strict reader: what it takes, the standard library must read alike, and what it refuses must name a position inside
the text, both in a second. `http` sends broken requests to a running server (of test data: what is valid is run): no answer may be a
500 or take ten seconds, and every refusal under /api/ that names a request must be a problem. What fails is kept in var/fuzz/ and printed.
"""

import argparse
import hashlib
import json
import random
import sys
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

from apps.api import strict_json
from tests.api import hostile, wire

CORPUS = Path(__file__).parent / "corpus"
KEPT = Path(__file__).parent.parent.parent / "var" / "fuzz"
SEEDS = [path.read_bytes() for path in sorted(CORPUS.iterdir())] + [
    body for body in {**hostile.UNREADABLE, **hostile.INVALID}.values() if len(body) < 10_000
]
PIECES = [
    *(bytes([byte]) for byte in b'[]{}",:\\0-+.eE \n'),
    *(
        rb"\u0000",
        rb"\ud800",
        rb"\udc00",
        b"\x00",
        b"\xff",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"NaN",
        b"-Infinity",
        b"1e999",
    ),
    *(b"9" * 19, b"9" * 400, b"[" * 65, b'{"a":' * 65, b'"a":1,"a":1', b"null", b"true", b"/**/"),
]
PATHS = [
    "/api/v1/tools/catalogue.list_products",
    "/api/v1/tools/catalogue.update_prices",
    "/api/v1/tools",
    "/api/v1/public/tools",
]
METHODS = ["POST"] * 8 + ["GET", "HEAD", "PUT", "OPTIONS", "TRACE"]
HEADERS = [
    "Content-Type: application/json; charset*=x''%41",
    "Content-Type: text/plain",
    "Content-Encoding: gzip",
    "Transfer-Encoding: chunked",
    "Expect: 100-continue",
    "Idempotency-Key: \xff",
    "X-Request-ID: \xe9",
    "Accept-Language: x;q=y,\xff",
    'Cookie: sessionid="\\000"',
    "X_Forwarded_For: x",
    "Connection: keep-alive, close",
]


class Found(Exception):
    """An input that breaks a promise; the message says which."""


def mutated(chance: random.Random, seed: bytes) -> bytes:
    """The seed after a few cuts, copies, splices and flips."""
    data = bytearray(seed)
    for _ in range(chance.randint(1, 6)):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.randint(0, 12))
        match chance.randint(0, 5):
            case 0:
                del data[start:end]
            case 1:
                data[start:start] = chance.choice(PIECES)
            case 2:
                data[start:start] = data[start:end] * chance.randint(1, 4)
            case 3:
                other = chance.choice(SEEDS)
                at = chance.randint(0, len(other))
                data[start:end] = other[at : at + chance.randint(0, 40)]
            case 4 if start < len(data):
                data[start] ^= 1 << chance.randint(0, 7)
            case _:
                data[start:end] = bytes(reversed(data[start:end]))
    return bytes(data)


def read(data: bytes) -> None:
    """The promises of the strict reader."""
    started = time.monotonic()
    try:
        value = strict_json.loads(data)
    except strict_json.InvalidJSON as error:
        if error.position is not None and not 0 <= error.position <= len(data):
            raise Found(f"the position {error.position} is outside") from None
    else:
        if repr(value) != repr(json.loads(data)):
            raise Found("read otherwise than by the standard library")
        if (reason := strict_json.check_value(value)) is not None:
            raise Found(f"read, although {reason}")
    if time.monotonic() - started > 1:
        raise Found("took more than a second")


def sender(chance: random.Random, port: int, key: str) -> Callable[[bytes], None]:
    """A function that sends a body in a request that is broken somewhere, and holds the answer to its promises."""

    def send(body: bytes) -> None:
        headers = [f"Authorization: Bearer {key}", *chance.sample(HEADERS, chance.choice([0, 0, 0, 1, 2]))]
        path = chance.choice(PATHS) + chance.choice(
            ["", "", "", "/", "//", "%00", "%ff", "/..", "?a=%00", "?key=1", "x" * 5_000]
        )
        raw = wire.request(chance.choice(METHODS), path, *headers, body=body)
        if chance.random() < 0.2:
            raw = mutated(chance, raw)
        with wire.connect(port) as one:
            one.send(raw)
            one.finish()
            try:
                answer = one.read(raw.partition(b" ")[0].decode("latin-1"))
            except TimeoutError:
                raise Found(f"no answer to {raw!r}") from None
            except (OSError, ValueError, HTTPException):
                return  # hung up: half a request has no answer
        _check(answer, raw)

    return send


def _check(answer: wire.Answer, raw: bytes) -> None:
    kind = answer.headers.get("Content-Type", "")
    if answer.status >= 500 and answer.status != 503:
        raise Found(f"{answer.status} to {raw!r}")
    of_the_api = raw.partition(b" ")[2].startswith(b"/api/") and "X-Request-ID" in answer.headers
    if answer.status >= 400 and of_the_api and "problem+json" not in kind:
        raise Found(f"{answer.status} as {kind} to {raw!r}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=["reader", "http"])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=None, help="repeats a run of the reader")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--key", default="")
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.SystemRandom().randint(0, 2**32)
    chance = random.Random(seed)
    target = read if options.target == "reader" else sender(chance, options.port, options.key)
    until, tried, failed = time.monotonic() + options.seconds, 0, 0
    while time.monotonic() < until and failed < 10:
        data = mutated(chance, chance.choice(SEEDS))
        tried += 1
        try:
            target(data)
        except Exception as error:
            failed += 1
            KEPT.mkdir(parents=True, exist_ok=True)
            kept = KEPT / f"{hashlib.sha256(data).hexdigest()[:16]}.bin"
            kept.write_bytes(data)
            sys.stdout.write(f"{kept}: {type(error).__name__}: {error}\n")
    sys.stdout.write(f"{tried} inputs, {failed} failed (seed {seed})\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
