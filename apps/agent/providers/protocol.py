"""What the turn loop asks of a model, and what it gets (TU-2, TU-7). No library's own type passes this border.

A history is a list of Said, Proposed and Resulted, oldest first, well formed: each call of a Proposed is answered by one Resulted before
anything else comes. An answer is a stream of Text pieces and whole ToolCalls, ended by one Usage.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """The model asks for a tool. `arguments` is what it sent, as text: it may be no JSON at all."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, kw_only=True)
class Said:
    """A text of the person (or of the server, told to the model as the person's side)."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Proposed:
    """An earlier answer of the model."""

    text: str = ""
    calls: Sequence[ToolCall] = ()


@dataclass(frozen=True, kw_only=True)
class Resulted:
    """What a call came to, as the model is told it: JSON text, marked as untrusted data."""

    call_id: str
    name: str
    text: str


Line = Said | Proposed | Resulted


@dataclass(frozen=True, kw_only=True)
class ToolOffer:
    """A tool as the model sees it. `name` is the spelling with an underscore; `schema` is closed and has no references."""

    name: str
    description: str
    schema: Mapping[str, Any]
    is_write: bool = False


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One request to a model."""

    instructions: str
    history: Sequence[Line]
    tools: Sequence[ToolOffer] = ()
    max_output_tokens: int = 4_096


@dataclass(frozen=True, kw_only=True)
class Text:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, kw_only=True)
class Usage:
    """The end of the stream: tokens of this request."""

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    # The provider cut the answer at its limit of tokens.
    is_cut: bool = False
    # The provider said what it counted. Where it did not, the journal estimates.
    is_counted: bool = True


Piece = Text | ToolCall | Usage

# Why a provider gave no whole answer. `retry_after` in seconds where it said so. `endpoint_forbidden`: its address is none that this
# installation may call; `key_unreadable`: the stored key can't be decrypted any more.
FailureCode = Literal[
    "provider_unauthorized",
    "provider_rate_limited",
    "provider_overloaded",
    "provider_refused",
    "provider_unreachable",
    "provider_timeout",
    "provider_cut",
    "provider_invalid",
    "context_overflow",
    "endpoint_forbidden",
    "key_unreadable",
    "no_model",
]


class Failure(Exception):
    """The provider gave no whole answer. The detail is for the operator's log, never for a client, and holds no secret."""

    def __init__(self, code: FailureCode, detail: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail, self.retry_after = code, detail, retry_after


class Model(Protocol):
    """One model of one turn, with a client of its own. `provider` and `model` are the journal's words."""

    provider: str
    model: str

    def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """Stream the answer; raises Failure. Closing the iterator closes the provider's connection at once."""
        ...

    async def close(self) -> None:
        """Let go of the client."""
        ...


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """The model that answers, its endpoint's limits, and whether it is the demo."""

    model: Model
    endpoint_uuid: Any = None
    context_chars: int | None = None
    max_output_tokens: int = 4_096
    is_demo: bool = False
    price: Mapping[str, Any] = field(default_factory=dict)
