"""The project's own settings, with the tools of the suite's tasks."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as OURS

INSTALLED_APPS = [*OURS, "tests.api.mcp.suite"]
MCP_PROVIDER = "tests.api.mcp.suite.tools.Greeter"
