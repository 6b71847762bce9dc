"""Core's own module `system` (MT-7): what describes the calling key and the API itself. No scope, no permission, never a session."""

from typing import Any

from apps.api import problems, registry
from apps.api.tool import Context, Module

module = Module.core()


@module.tool("system.whoami", title="Who am I", annotations={"read_only": True})
def whoami(ctx: Context) -> dict[str, Any]:
    """The calling key, its scopes, and what is left of its budgets."""
    key = ctx.actor.key
    assert key is not None  # noqa: S101 - the admin audience has keys alone, and sessions can't call this
    return {
        "key": {
            "id": key.public_id,
            "name": key.name,
            "family": key.family,
            "requires_approval": key.requires_approval,
            "expires_at": key.expires_at,
        },
        "scopes": sorted(ctx.scopes),
        "limits": [
            {
                "policy": level.bucket.policy,
                "budget": level.bucket.budget,
                "window_seconds": level.bucket.seconds,
                "remaining": level.remaining,
            }
            for level in ctx.levels
        ],
    }


@module.tool("system.problems", title="Problem codes", annotations={"read_only": True})
def list_problems(ctx: Context) -> dict[str, Any]:
    """Every code that an answer may carry, with its status and what to do next."""
    kinds = sorted(registry.current().kinds.values(), key=lambda kind: kind.code)
    return {
        "problems": [
            {
                "code": kind.code,
                "status": kind.status,
                "title": str(kind.title),
                "type": problems.type_url(kind.code),
                "retry": kind.retry,
            }
            for kind in kinds
        ]
    }
