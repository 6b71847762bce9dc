"""What every problem has, whoever made it (PR-1)."""

import json
from typing import Any

from apps.api import problems
from apps.api.problems import CORE

STANDARD = ("type", "title", "status", "detail", "code", "retry", "request_id")


def checked(body: bytes, *, status: int, headers: Any) -> dict[str, Any]:
    """The document of an answer, after the checks that hold for each."""
    assert headers["Content-Type"].partition(";")[0] == problems.MEDIA_TYPE
    found: dict[str, Any] = json.loads(body)
    assert all(isinstance(found[name], int if name == "status" else str) for name in STANDARD)
    assert found["status"] == status
    assert found["type"].endswith(f"/problems/{found['code']}")
    assert found["type"].startswith("http")
    assert found["request_id"] == headers["X-Request-ID"]
    assert found["retry"] in ("same_key", "later", "new_key", "never")
    assert found["detail"].strip()
    assert "Traceback" not in body.decode()
    if found["code"] in CORE and status in {kind.status for kind in CORE.values()}:
        assert CORE[found["code"]].status == status
    return found


def of(answer: Any, status: int, code: str = "") -> dict[str, Any]:
    """The problem that Django's test client got, with this status and code."""
    assert answer.status_code == status, (answer.status_code, answer.content[:500])
    found = checked(answer.content, status=status, headers=answer.headers)
    assert not code or found["code"] == code, found
    return found
