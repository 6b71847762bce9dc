"""Rows of endpoints, for the tests of turns over real sockets."""

from typing import Any

from apps.agent import endpoint_keys
from apps.agent.models import ModelEndpoint
from tests.agent.wire.server import KEY


def make_endpoint(*, key: str = KEY, **fields: Any) -> ModelEndpoint:
    """The default endpoint: OpenAI's wire format unless the fields say otherwise."""
    values = {"name": "wire", "provider": "openai", "model": "wire-1", "is_default": True, **fields}
    row = ModelEndpoint(**values)
    endpoint_keys.put(row, key)
    row.save()
    return row
