"""What the host may listen to: an approval changed. Sent after the commit, with its uuid alone; whoever hears it fetches the rest."""

from uuid import UUID

from django.dispatch import Signal

# Argument: `approval`, the uuid. A receiver is quick; one that fails is logged by Django and changes nothing.
approval_changed = Signal()


class Approval:
    """The sender."""


def changed(uuid: UUID) -> None:
    """Tell the receivers."""
    approval_changed.send_robust(Approval, approval=uuid)
