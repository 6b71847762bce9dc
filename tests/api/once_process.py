"""`python -m tests.api.once_process '<json>'` sends calls to `tests.api.once` through the whole flow and prints the answers as JSON.

One call, or `threads` equal ones that start together when the test opens the gate.
"""

import json
import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import django
from django.db import connection
from django.test.utils import override_settings


def send(arguments: dict[str, Any]) -> dict[str, Any]:
    """`{"status", "body", "replayed", "retry_after"}` of one call."""
    from tests.api.factories import Machine

    answer = Machine(text=arguments["text"]).call(
        arguments["tool"], arguments["body"], headers=arguments.get("headers")
    )
    return {
        "status": answer.status_code,
        "body": answer.content.decode(),
        "replayed": "Idempotent-Replayed" in answer.headers,
        "retry_after": answer.headers.get("Retry-After"),
    }


def send_together(arguments: dict[str, Any]) -> list[dict[str, Any]]:
    """The answers of the threads, which all wait at the gate first."""
    ready = threading.Barrier(arguments["threads"])

    def one(_: int) -> dict[str, Any]:
        ready.wait()
        stand_at(arguments["gate"], f"ready.{os.getpid()}", f"ready.{os.getpid()}")
        try:
            return send(arguments)
        finally:
            connection.close()

    with ThreadPoolExecutor(arguments["threads"]) as pool:
        return list(pool.map(one, range(arguments["threads"])))


if __name__ == "__main__":
    django.setup()
    with override_settings(
        API_LEASE_SECONDS=int(os.environ.get("LEASE", "60")),
        EMAIL_BACKEND="django.core.mail.backends.filebased.EmailBackend",
        EMAIL_FILE_PATH=os.environ.get("MAILS", ""),
        ALLOWED_HOSTS=["testserver"],
    ):
        from apps.api import registry
        from apps.catalogue import tools
        from tests.api.once import make_once, stand_at

        wanted = json.loads(sys.argv[1])
        with registry.using(make_once(), tools.module):
            found = send_together(wanted) if "threads" in wanted else send(wanted)
        print(json.dumps(found), flush=True)  # noqa: T201 - the caller reads it
