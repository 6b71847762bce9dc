"""The `api.request` entry of a write (RF-10): which tool, by whom, how it ended. Never the input, the preview or the result."""

from dataclasses import dataclass, field
from uuid import UUID, uuid4

from apps.activity import actions
from apps.activity import log as activity
from apps.api import pricing
from apps.api.call import Call, Outcome, Refusal
from apps.api.credentials import VerifiedKey
from apps.api.tool import Context, Tool


@dataclass(frozen=True, kw_only=True)
class Audit:
    """The entry that a call owes. It is written once: with the effect, or after a call that had none."""

    call: Call
    tool: Tool
    key: VerifiedKey
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
        key, call = self.key, self.call
        activity.write(
            uuid=self.uuid,
            action=actions.API_REQUEST,
            module=self.tool.module.key,
            mode=activity.Mode.AUTO,
            actor=actor(key),
            resource_type="api_key",
            resource_uuid=str(key.uuid),
            target=self.tool.name,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={
                "tool": self.tool.name,
                "key": key.public_id,
                "rows": pricing.rows(call.input),
                "outcome": "error" if isinstance(outcome, Refusal) else outcome.outcome,
                "code": outcome.problem.code if isinstance(outcome, Refusal) else None,
                "confirmation_uuid": str(call.confirmation_uuid) if call.confirmation_uuid else None,
            },
        )


def actor(key: VerifiedKey) -> activity.Actor:
    return activity.Actor(kind="key", uuid=str(key.uuid), name=key.name)


def write_log_lines(call: Call, tool: Tool, ctx: Context) -> None:
    """The changes that the handler recorded with `ctx.log`, last in the effect's transaction."""
    for line in ctx.log_lines:
        if line.action in actions.CORE or not line.action.startswith(f"{tool.module.key}."):
            raise ValueError(f"{line.action!r} is no action of the module {tool.module.key}.")
        activity.write(
            action=line.action,
            module=tool.module.key,
            mode=activity.Mode.AUTO,
            actor=actor(call.actor.key) if call.actor and call.actor.key else activity.Actor(kind="public"),
            resource_type=line.resource_type,
            resource_uuid=line.resource_uuid,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={**line.metadata, "via": ctx.via, "confirmation_uuid": ctx.confirmation_uuid},
        )
