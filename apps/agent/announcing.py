"""A chat's events go to the channel layer's group of its topic, for the sockets of this and other processes (CH-5).

What leaves here, and what a socket takes from there, holds known keys and uuids and nothing else.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db.models.signals import post_save

from apps.accounts import sessions
from apps.agent import events
from apps.agent.models import AgentSetting
from apps.api import broadcast

EVENT = "chat.event"

Frame = dict[str, str | int]

# What each event names besides its chat.
_NAMES = {
    events.MESSAGE_ADDED: "message",
    events.MESSAGE_UPDATED: "message",
    events.TURN_CHANGED: "turn",
    events.CONFIRMATION_CHANGED: "confirmation",
    "agent_attachment_processed": "attachment",
}


def connect() -> None:
    """Announce from now on."""
    events.changed.connect(_on_changed, dispatch_uid="apps.agent.announcing")
    post_save.connect(_on_setting, sender=AgentSetting, dispatch_uid="apps.agent.announcing")


def group(topic: str) -> str:
    """The group of a topic: Channels takes no colon in its names."""
    return topic.replace(":", ".")


def frame_of(event: Mapping[str, Any]) -> Frame:
    """The event as a socket sends it. Raises KeyError, TypeError or ValueError for what is none."""
    kind, conversation = event["type"], UUID(event["conversation"])
    name = _NAMES[kind]
    frame: Frame = {"type": kind, "topic": events.topic(conversation), "conversation": str(conversation)}
    frame[name] = str(UUID(event[name]))
    if "version" in event:
        frame["version"] = int(event["version"])
    return frame


def subject(frame: Frame) -> str:
    """Of two events with the same one, the newer says all."""
    return f"{frame['type']} {frame[_NAMES[str(frame['type'])]]}"


def _on_changed(*, frame: Mapping[str, Any], **_: Any) -> None:
    sent = frame_of(frame)
    broadcast.post(group(str(sent["topic"])), {"type": EVENT, "frame": sent}, about=subject(sent))


def _on_setting(*, instance: AgentSetting, **_: Any) -> None:
    """The person may have been shut out: their open sockets look at once."""
    sessions.ask_again([instance.user_id])
