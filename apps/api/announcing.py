"""Changed approvals go to the channel layer's group `approvals`, by their uuid alone."""

from typing import Any
from uuid import UUID

from apps.api import approval_events, broadcast

GROUP = "approvals"
EVENT = "approval.changed"


def connect() -> None:
    """Announce from now on."""
    approval_events.approval_changed.connect(_on_changed, dispatch_uid="apps.api.announcing")


def _on_changed(*, approval: UUID, **_: Any) -> None:
    broadcast.post(GROUP, {"type": EVENT, "approval": str(approval)}, about=str(approval))
