"""What is needed to talk to one endpoint, as a value that needs neither the database nor the settings."""

from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlsplit

from apps.agent.providers.outgoing import Network

# The libraries want a key, and else look for one in the environment; `transport` sends the real one.
NO_KEY: Final = "none"

DEFAULT_URLS = {"openai": "https://api.openai.com/v1", "anthropic": "https://api.anthropic.com"}


@dataclass(frozen=True, kw_only=True)
class Connection:
    """`networks` are the operator's beside the public ones. A provider that says nothing for `silence_seconds` has hung.

    `explains`: a Failure's detail tells what the provider said. Only where it can't say anything of a person's: see `trial`.
    """

    provider: str
    model: str
    base_url: str = ""
    key: str = field(default="", repr=False)
    networks: tuple[Network, ...] = ()
    connect_seconds: float = 10.0
    silence_seconds: float = 60.0
    explains: bool = False

    @property
    def url(self) -> str:
        return self.base_url or DEFAULT_URLS[self.provider]

    @property
    def is_makers_own(self) -> bool:
        """Whether OpenAI itself answers, or its models at Azure: what only speaks its wire format knows less of it."""
        host = urlsplit(self.url).hostname or ""
        return host == "api.openai.com" or host.endswith(".openai.azure.com")
