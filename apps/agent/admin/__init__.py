"""The assistant in the admin site: chats, endpoints of models, their journal, settings, people. Importing this registers them."""

from apps.agent.admin.chats import ConversationAdmin
from apps.agent.admin.endpoints import ModelEndpointAdmin
from apps.agent.admin.journal import ModelCallAdmin
from apps.agent.admin.settings import AgentSettingAdmin

__all__ = ["AgentSettingAdmin", "ConversationAdmin", "ModelCallAdmin", "ModelEndpointAdmin"]
