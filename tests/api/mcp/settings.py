"""The project's own settings, with the tools that report, and streams that are not silent for long."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as OURS

INSTALLED_APPS = [*OURS, "tests.api.mcp.walking"]
API_MCP_KEEP_ALIVE_SECONDS = 0.2
