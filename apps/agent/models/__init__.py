"""The rows of the assistant. Only the modules of this app write them; a client gets what `shapes` makes of them."""

from apps.agent.models.card import Card
from apps.agent.models.conversation import Conversation
from apps.agent.models.endpoint import ModelEndpoint
from apps.agent.models.journal import ModelCall
from apps.agent.models.message import Message
from apps.agent.models.person import AgentSetting
from apps.agent.models.turn import Turn

__all__ = ["AgentSetting", "Card", "Conversation", "Message", "ModelCall", "ModelEndpoint", "Turn"]
