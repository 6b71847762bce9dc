"""`python -m tests.api.session_process '<json>'`: a request loop that calls for one live session, an answer for each line that it reads.

A line is `{"door": "execute_as" or "redeem_as", "tool", "body", "uuid"}`; the answer `{"status", "code", "reason", "result"}`, all as JSON.
"""

import json
import sys
from typing import Any
from uuid import UUID

import django
from django.test.utils import override_settings


def answered(ref: Any, wanted: dict[str, Any]) -> dict[str, Any]:
    from apps.api import executor
    from apps.api.call import Answer

    if wanted["door"] == "redeem_as":
        outcome = executor.redeem_as(
            ref, "admin", wanted["uuid"], wanted["tool"], wanted["body"], impersonated=False, via="agent"
        )
    else:
        outcome = executor.execute_as(
            ref, "admin", wanted["tool"], wanted["body"], impersonated=False, allow="all", via="agent"
        )
    if isinstance(outcome, Answer):
        return {"status": 200, "code": None, "reason": None, "result": json.loads(outcome.body)}
    problem = outcome.problem
    return {"status": outcome.status, "code": problem.code, "reason": problem.context.get("reason"), "result": None}


if __name__ == "__main__":
    django.setup()
    with override_settings(EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend"):
        from apps.accounts.sessions import SessionRef
        from apps.api import registry
        from apps.catalogue import tools
        from tests.api.once import make_once

        session, user = (UUID(text) for text in json.loads(sys.argv[1]))
        with registry.using(make_once(), tools.module):
            print("ready", flush=True)  # noqa: T201 - the caller reads it
            for line in sys.stdin:
                print(json.dumps(answered(SessionRef(session, user), json.loads(line))), flush=True)  # noqa: T201 - the caller reads it
