"""The assistant in the admin site: endpoints of models, their journal, settings, people. Importing this registers them."""

from apps.agent.admin.endpoints import ModelEndpointAdmin
from apps.agent.admin.journal import ModelCallAdmin

__all__ = ["ModelCallAdmin", "ModelEndpointAdmin"]
