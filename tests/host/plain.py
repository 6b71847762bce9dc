"""The bare host as it is when it has never heard of structlog."""

import structlog

from tests.host.settings import *  # noqa: F403 - the same settings

structlog.reset_defaults()
