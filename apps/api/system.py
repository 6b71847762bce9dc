"""Core's own module `system` (MT-7): the calling key, its approvals, the API itself. No scope, no permission, never a session."""

from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from apps.api import approval_listing, approvals, audit, problems, registry
from apps.api.models import Approval
from apps.api.tool import Context, Module, ToolError

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


Status = Literal["pending", "approved", "running", "done", "rejected", "expired", "cancelled", "failed"]


@module.tool("system.get_approval", title="Get an approval", annotations={"read_only": True})
def get_approval(ctx: Context, *, approval_id: UUID) -> dict[str, Any]:
    """What became of a write that waits for a person: its status, how far it came, and its result."""
    return approval_listing.describe(_own(ctx, approval_id))


@module.tool("system.list_approvals", title="List approvals", annotations={"read_only": True})
def list_approvals(
    ctx: Context,
    *,
    status: Status | None = None,
    limit: Annotated[int, Field(ge=1, le=100)] = 20,
    cursor: Annotated[str, Field(max_length=200)] | None = None,
) -> dict[str, Any]:
    """The writes of this key, the newest first, without their previews. `next_cursor` continues, null ends."""
    try:
        return approval_listing.page(_family(ctx), status=status, limit=limit, cursor=cursor)
    except ValueError:
        raise ToolError("validation_failed", "This is no cursor of this list.") from None


@module.tool(
    "system.cancel_approval",
    title="Cancel an approval",
    annotations={"read_only": False, "destructive": False, "idempotent": True},
    is_direct=True,
)
def cancel_approval(ctx: Context, *, approval_id: UUID) -> dict[str, Any]:
    """Take a write back that nobody has started yet."""
    own = _own(ctx, approval_id)
    approvals.cancel(own, actor=audit.actor_of(ctx.actor), request_id=ctx.request_id or "", ip=ctx.actor.ip or None)
    return approval_listing.describe(_own(ctx, approval_id))


def _own(ctx: Context, uuid: UUID) -> Approval:
    found = approvals.of_family(_family(ctx), uuid)
    if found is None:
        raise ToolError("not_found", "There is no such approval.")
    return found


def _family(ctx: Context) -> UUID:
    assert ctx.actor.key is not None  # noqa: S101 - as above
    return ctx.actor.key.family
