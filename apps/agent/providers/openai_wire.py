"""A model behind OpenAI's chat completions, or behind a server that speaks the same."""

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from apps.agent.providers.connection import NO_KEY, Connection


def model(connection: Connection, http: Any) -> OpenAIChatModel:
    """The schemas of our tools are closed and have no references: they are sent as they are."""
    client = AsyncOpenAI(api_key=NO_KEY, base_url=connection.url, http_client=http, max_retries=0)
    if connection.is_makers_own:
        profile = ModelProfile(json_schema_transformer=None)
        return OpenAIChatModel(connection.model, provider=OpenAIProvider(openai_client=client), profile=profile)
    # The older name of the limit is the one that everybody knows: a server that ignores it would write without end.
    compatible = OpenAIModelProfile(json_schema_transformer=None, openai_chat_supports_max_completion_tokens=False)
    provider = OpenAICompatibleProvider("openai-compatible", openai_client=client)
    return OpenAIChatModel(connection.model, provider=provider, profile=compatible)
