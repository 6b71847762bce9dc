"""The project's own settings, with the module of tools that the suite asks for."""

from config.settings import *  # noqa: F403
from config.settings import INSTALLED_APPS as OURS

INSTALLED_APPS = [*OURS, "tests.conformance.fixture"]
