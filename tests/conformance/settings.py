"""The project's own settings, with the module of tools that the suite asks for and, where the run says so, the provider."""

import os

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as OURS

INSTALLED_APPS = [*OURS, "tests.conformance.fixture"]
MCP_PROVIDER = os.environ.get("CONFORMANCE_PROVIDER", "")
