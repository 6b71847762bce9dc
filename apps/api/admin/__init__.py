"""The gate in the admin site: API keys, and a plain page for the settings. Importing this registers both."""

from apps.api.admin.keys import ApiKeyAdmin
from apps.api.admin.settings import SettingAdmin

__all__ = ["ApiKeyAdmin", "SettingAdmin"]
