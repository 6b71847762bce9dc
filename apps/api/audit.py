"""The `api.request` entry of a write (RF-10): which tool, by whom, how it ended. Never the input, the preview or the result."""

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from apps.activity import actions
from apps.activity import log as activity
from apps.api import pricing
from apps.api.call import Actor, Call, Outcome, Refusal
from apps.api.tool import Context, Tool


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The entry that a call owes. It is written once: with the effect, or after a call that had none."""

    call: Call
    tool: Tool
    actor: Actor
    uuid: UUID = field(default_factory=uuid4)

    def with_effect(self, outcome: Outcome) -> None:
        """Inside the effect's transaction: entry and effect commit together or not at all."""
        self._write(outcome)

    def without_effect(self, outcome: Outcome) -> None:
        """After a call that ended without a commit of its own. A replay of a stored answer leaves none."""
        if self.call.settled or outcome.replayed:
            return
        # A connection that broke during COMMIT may have left the entry of the effect: then that one tells what happened.
        if not (self.call.unknown and activity.is_written(self.uuid)):
            self._write(outcome)

    def _write(self, outcome: Outcome) -> None:
        call, by = self.call, actor_of(self.actor)
        activity.write(
            uuid=self.uuid,
            action=actions.API_REQUEST,
            module=self.tool.module.key,
            # A confirmation is the person's own act; everything else is a machine's.
            mode=activity.Mode.MANUAL if call.redeems else activity.Mode.AUTO,
            actor=by,
            resource_type="user" if by.kind == "user" else "api_key",
            resource_uuid=by.uuid,
            target=self.tool.name,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={**self._whose(), **self._ending(outcome)},
        )

    def _whose(self) -> dict[str, Any]:
        """A key's entry names the key and counts the rows; a person's says what asked on their behalf (LS-4)."""
        call = self.call
        if self.actor.key is not None:
            found = {"key": self.actor.key.public_id, "rows": pricing.rows(call.input)}
            return {**found, "approvers": list(call.approvers)} if call.approvers else found
        return self._of_person()

    def _of_person(self) -> dict[str, Any]:
        call = self.call
        found = {"via": call.on_behalf.via if call.on_behalf else None, "request_id": call.entrance.request_id}
        return found if call.replaces_uuid is None else {**found, "replaces_confirmation_uuid": str(call.replaces_uuid)}

    def _ending(self, outcome: Outcome) -> dict[str, Any]:
        return {
            "tool": self.tool.name,
            "outcome": "error" if isinstance(outcome, Refusal) else outcome.outcome,
            "code": outcome.problem.code if isinstance(outcome, Refusal) else None,
            "confirmation_uuid": str(self.call.confirmation_uuid) if self.call.confirmation_uuid else None,
        }


def actor_of(actor: Actor) -> activity.Actor:
    """The caller as entries name them."""
    if actor.key is not None:
        return activity.Actor(kind="key", uuid=str(actor.key.uuid), name=actor.key.name)
    if actor.kind == "user" and actor.scope is not None:
        return activity.Actor(kind="user", uuid=actor.scope.person_id, name=actor.scope.name)
    return activity.Actor(kind="public")


def write_log_lines(call: Call, tool: Tool, ctx: Context) -> None:
    """The changes that the handler recorded with `ctx.log`, last in the effect's transaction."""
    for line in ctx.log_lines:
        if line.action in actions.CORE or not line.action.startswith(f"{tool.module.key}."):
            raise ValueError(f"{line.action!r} is no action of the module {tool.module.key}.")
        activity.write(
            action=line.action,
            module=tool.module.key,
            mode=activity.Mode.MANUAL if call.redeems else activity.Mode.AUTO,
            actor=actor_of(ctx.actor),
            resource_type=line.resource_type,
            resource_uuid=line.resource_uuid,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={**line.metadata, "via": ctx.via, "confirmation_uuid": ctx.confirmation_uuid},
        )
