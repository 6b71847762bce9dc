"""A model behind Anthropic's messages."""

from typing import Any

from anthropic import AsyncAnthropic
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.providers.anthropic import AnthropicProvider

from apps.agent.providers.connection import NO_KEY, Connection


def model(connection: Connection, http: Any) -> AnthropicModel:
    """The schemas of our tools are closed and have no references: they are sent as they are."""
    client = AsyncAnthropic(api_key=NO_KEY, base_url=connection.url, http_client=http, max_retries=0)
    profile = ModelProfile(json_schema_transformer=None)
    return AnthropicModel(connection.model, provider=AnthropicProvider(anthropic_client=client), profile=profile)
