"""What a chat's listeners are told: that something changed, by uuids and versions, never its content (CH-5).

Each function is called inside the transaction that changes it, and leaves after its commit. Whoever hears it fetches the rest through
the checked functions of `conversations`, and drops repeats by uuid.
"""

from functools import partial
from uuid import UUID

from django.db import transaction
from django.dispatch import Signal

MESSAGE_ADDED = "agent_message_added"
MESSAGE_UPDATED = "agent_message_updated"
TURN_CHANGED = "agent_turn_changed"
CONFIRMATION_CHANGED = "agent_confirmation_changed"

# Argument: `frame`, the event as a socket sends it, without its topic. A receiver is quick; one that fails changes nothing.
changed = Signal()


class Chat:
    """The sender."""


def topic(conversation: UUID) -> str:
    """The name under which a chat's events are known."""
    return f"agent:conv:{conversation}"


def message_added(conversation: UUID, message: UUID) -> None:
    """A message was stored."""
    _after_commit({"type": MESSAGE_ADDED, "conversation": str(conversation), "message": str(message)})


def message_updated(conversation: UUID, message: UUID, *, version: int) -> None:
    """A draft grew, or a message came to its end."""
    frame = {"type": MESSAGE_UPDATED, "conversation": str(conversation), "message": str(message)}
    _after_commit({**frame, "version": version})


def turn_changed(conversation: UUID, turn: UUID) -> None:
    """A turn was queued, started or ended, or was asked to stop."""
    _after_commit({"type": TURN_CHANGED, "conversation": str(conversation), "turn": str(turn)})


def confirmation_changed(conversation: UUID, confirmation: UUID) -> None:
    """A card appeared, was decided, expired or replaced."""
    _after_commit({"type": CONFIRMATION_CHANGED, "conversation": str(conversation), "confirmation": str(confirmation)})


def _after_commit(frame: dict[str, str | int]) -> None:
    transaction.on_commit(partial(changed.send_robust, Chat, frame=frame))
