"""`python -m tests.api.approval_process '<json>'`: a worker that is delivered approvals, one for each uuid of the list, in threads."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

import django
from django.db import connection

if __name__ == "__main__":
    django.setup()
    from apps.api import registry, runs
    from tests.api.once import make_once

    def deliver(text: str) -> None:
        try:
            runs.run(UUID(text))
        finally:
            connection.close()

    uuids = json.loads(sys.argv[1])
    with registry.using(make_once()), ThreadPoolExecutor(len(uuids)) as pool:
        list(pool.map(deliver, uuids))
    print("done", flush=True)  # noqa: T201 - the caller reads it
