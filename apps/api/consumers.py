"""`/ws/approvals/`: tells a signed-in approver which approvals changed, by their uuid and nothing else (AP-7, section 26)."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from apps.api import announcing, approval_queue, deciding, live_sockets, standing
from apps.api.live_sockets import LiveSocket
from apps.api.people import Scope, Session
from apps.api.standing import FORBIDDEN, OVER, Closed, Standing


def _approver(ref: object) -> Session:
    session = approval_queue.looker(ref)
    if not isinstance(session, Session):
        raise Closed(OVER)
    if not session.scope.can(deciding.PERMISSION):
        raise Closed(FORBIDDEN)
    return session


class _Approver(Standing):
    """Also knows which approvals the person may look at: many sockets of one session ask for the same ones at the same time."""

    def __init__(self, ref: object) -> None:
        super().__init__(ref, _approver)
        self._is_visible: dict[UUID, bool] = {}

    async def visible(self, scope: Scope, uuids: set[UUID]) -> list[UUID]:
        """Those of them."""
        async with self._lock:
            unknown = uuids - self._is_visible.keys()
            if unknown:
                found = await standing.in_thread(approval_queue.visible, scope, unknown)
                self._is_visible.update({uuid: uuid in found for uuid in unknown})
            return [uuid for uuid in uuids if self._is_visible[uuid]]

    async def _ask(self) -> None:
        await super()._ask()
        self._is_visible = {}


class ApprovalEvents(LiveSocket):
    """One socket."""

    gap_seconds = 0.1
    common_groups = (announcing.GROUP,)

    def standing_of(self, ref: object) -> _Approver:
        """For all sockets of the session."""
        return standing.of(ref, _Approver)

    async def heard(self, frame: Mapping[str, Any]) -> None:
        """A ping keeps a proxy from closing an idle socket; nothing else is said here."""
        if frame != live_sockets.PING:
            await self.refuse("validation_failed")

    async def approval_changed(self, event: Any) -> None:
        """From the layer."""
        with suppress(KeyError, TypeError, ValueError):
            uuid = UUID(event["approval"])
            self.note(uuid, uuid)

    async def tell(self, session: Session, waiting: Mapping[Any, Any]) -> None:
        """Those that the person may look at."""
        approver = standing.of(self.ref, _Approver)
        for uuid in await approver.visible(session.scope, set(waiting)):
            await self.say({"type": "approval_changed", "approval": str(uuid)})
