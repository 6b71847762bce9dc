"""The cards of some messages of a chat, for the page that shows each below the line that proposed it (TU-3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from apps.agent import access, cards
from apps.agent.models import Card
from apps.agent.shapes import CardShape
from apps.api import registry
from apps.api.tool import Tool


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A card below its message. Where its tool is not visible now, nothing of arguments and preview is in the shape (CH-4)."""

    message: UUID
    shape: CardShape
    code: str
    replaced_by: UUID | None
    is_visible: bool


def of_messages(
    ref: object, conversation_uuid: object, messages: Sequence[UUID], *, impersonated: bool
) -> list[Placed]:
    """The cards of these messages of the person's chat, oldest first."""
    allowed = access.authorize(ref, impersonated=impersonated)
    chat = access.own_chat(allowed, conversation_uuid)
    found = list(Card.objects.filter(conversation=chat, message__in=messages).order_by("created_at", "pk"))
    visible = set(cards.visible(allowed)) if found else set()
    return [_placed(card, is_visible=card.tool in visible) for card in found]


def callable_tools(ref: object, *, impersonated: bool) -> list[Tool]:
    """The tools that the session may call now, by name."""
    names = cards.visible(access.authorize(ref, impersonated=impersonated))
    found = (registry.current().find("admin", name) for name in sorted(names))
    return [tool for tool in found if tool is not None]


def _placed(card: Card, *, is_visible: bool) -> Placed:
    shape = cards.shape(card)
    if not is_visible:
        shape = {**shape, "arguments": None, "preview": None}
    return Placed(
        message=card.message_id, shape=shape, code=card.code, replaced_by=card.replaced_by_id, is_visible=is_visible
    )
