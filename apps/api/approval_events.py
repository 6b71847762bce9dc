"""What the host may listen to: an approval changed. Sent after the commit, with its uuid alone; whoever hears it fetches the rest."""

from uuid import UUID

from django.dispatch import Signal

# Argument: `approval`, the uuid. A receiver is quick; one that fails is logged by Django and changes nothing.
approval_changed = Signal()

# It may be run now. Sent at the vote that was enough, and again by the sweeps: it may come twice, and late.
approval_approved = Signal()


class Approval:
    """The sender."""


def changed(uuid: UUID) -> None:
    """Tell the receivers."""
    approval_changed.send_robust(Approval, approval=uuid)


def approved(uuid: UUID) -> None:
    """Ask for a worker."""
    approval_approved.send_robust(Approval, approval=uuid)
