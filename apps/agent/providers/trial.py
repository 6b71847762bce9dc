"""`python -m apps.agent.providers.trial`: one tiny request to an endpoint, in a process of its own, which ends with it.

The connection comes as JSON on standard input, and what became of it goes out as JSON. Neither Django nor the database is needed.
"""

import asyncio
import json
import sys
import time
from ipaddress import ip_network
from typing import Any

from apps.agent.providers.adapter import DirectModel
from apps.agent.providers.connection import Connection
from apps.agent.providers.protocol import Ask, Failure, Said, Text, Usage

# Enough for a word, and for a model that thinks before it.
TOKENS = 64
ASK = Ask(instructions="Answer with one word.", history=[Said(text="Say hello.")], max_output_tokens=TOKENS)


async def _try(connection: Connection) -> dict[str, Any]:
    text, usage, began = "", Usage(), time.monotonic()
    model = DirectModel(connection)
    try:
        async for piece in model.answer(ASK):
            match piece:
                case Text():
                    text += piece.text
                case Usage():
                    usage = piece
                case _:
                    pass
    finally:
        await model.close()
    return {"text": text, "usage": vars(usage), "seconds": time.monotonic() - began}


def main() -> None:
    """Read, ask, tell."""
    sent = json.load(sys.stdin)
    networks = tuple(ip_network(network) for network in sent.pop("networks"))
    try:
        found = asyncio.run(_try(Connection(**sent, networks=networks, explains=True)))
    except Failure as failure:
        found = {"code": failure.code, "detail": failure.detail, "retry_after": failure.retry_after}
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
