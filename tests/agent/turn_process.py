"""`python -m tests.agent.turn_process '<json>'`: a worker that is delivered turns, in threads: `{"uuids", "answers"}`.

An answer is a list of `["say", text]`, `["call", tool, arguments]` and `["hang", file]`, which makes the file and says nothing more. LEASE
and IDLE are its lease and the time that its transactions may stand still, in seconds.
"""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import UUID

import django
from django.db import connection
from django.test.utils import override_settings

if __name__ == "__main__":
    django.setup()
    from apps.agent import loop, turn_state
    from apps.api import registry
    from tests.agent import scripted
    from tests.agent.desk import make_desk

    class Mark(scripted.Hang):
        """Silence that another process can see."""

        def __init__(self, path: str) -> None:
            self.path = path

    class Marked(scripted.ScriptedModel):
        async def _played(self, step: scripted.Step) -> Any:
            if isinstance(step, Mark):
                Path(step.path).touch()
            async for piece in super()._played(step):
                yield piece

    def step(kind: str, *rest: str) -> scripted.Step:
        match kind:
            case "say":
                return scripted.Text(text=rest[0])
            case "call":
                return scripted.ToolCall(id="1", name=rest[0], arguments=rest[1])
            case _:
                return Mark(rest[0])

    def deliver(text: str) -> None:
        try:
            loop.run(UUID(text))
        finally:
            connection.close()

    turn_state.IDLE_SECONDS = int(os.environ.get("IDLE", "15"))
    wanted = json.loads(sys.argv[1])
    scripted.ScriptedModel = Marked  # type: ignore[misc]
    with (
        scripted.playing(*[[step(*part) for part in answer] for answer in wanted["answers"]]),
        override_settings(AGENT_LEASE_SECONDS=int(os.environ.get("LEASE", "30"))),
        registry.using(make_desk()),
        ThreadPoolExecutor(len(wanted["uuids"])) as pool,
    ):
        list(pool.map(deliver, wanted["uuids"]))
    print("done", flush=True)  # noqa: T201 - the caller reads it
