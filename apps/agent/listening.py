"""Who in this process listens to a chat's events (CH-5): each receiver is told of the chats that it subscribed to, and of no other.

A browser's socket listens by the channel layer instead. Neither is guarded here: `conversations.subscribe` checks before it comes here.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import structlog
from django.dispatch import receiver

from apps.agent import events

log = structlog.get_logger(__name__)

Receiver = Callable[[Mapping[str, Any]], object]

_lock = threading.Lock()
_receivers: dict[str, list[Receiver]] = {}


def add(topic: str, listener: Receiver) -> None:
    """One more subscription: who is added twice hears everything twice."""
    with _lock:
        _receivers.setdefault(topic, []).append(listener)


def remove(topic: str, listener: Receiver) -> None:
    """All subscriptions of the receiver to the topic end; nothing happens where there is none."""
    with _lock:
        left = [other for other in _receivers.pop(topic, []) if other != listener]
        if left:
            _receivers[topic] = left


@receiver(events.changed)
def _on_changed(*, frame: Mapping[str, Any], **_: Any) -> None:
    with _lock:
        listeners = list(_receivers.get(events.topic(UUID(frame["conversation"])), ()))
    for listener in listeners:
        try:
            listener(frame)
        except Exception:
            # One that fails keeps nothing from the others.
            log.exception("listener_failed", event_type=frame["type"])
