"""What a provider does with a request, step by step. A list of steps is one answer."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Say:
    """The next piece of the text."""

    text: str


@dataclass(frozen=True)
class Call:
    """A call of a tool; the arguments come in these fragments, and need not be JSON."""

    id: str
    name: str
    fragments: tuple[str, ...]


@dataclass(frozen=True)
class Together:
    """Several calls whose fragments come in turn, as OpenAI's index allows."""

    calls: tuple[Call, ...]


@dataclass(frozen=True)
class Finish:
    """The end: why it ended, in the provider's own word ("" for its usual one), and the tokens."""

    reason: str = ""
    input_tokens: int = 11
    output_tokens: int = 7
    cache_read: int = 0
    cache_write: int = 0
    has_usage: bool = True


@dataclass(frozen=True)
class Refuse:
    """An error instead of an answer, or, after the first step, inside the stream."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """These bytes, whatever they are."""

    data: bytes


@dataclass(frozen=True)
class Cut:
    """The connection breaks off."""


@dataclass(frozen=True)
class End:
    """The body ends in order, but the answer does not: what a proxy makes of a provider that died."""


@dataclass(frozen=True)
class Silence:
    """Nothing more is said until the client goes away. As the first step, not even the head of the answer."""


@dataclass(frozen=True)
class Gate:
    """Nothing is said until the test opens it."""

    opened: threading.Event = field(default_factory=threading.Event)


Step = Say | Call | Together | Finish | Refuse | Raw | Cut | End | Silence | Gate


@dataclass(frozen=True, kw_only=True)
class Request:
    """What a client sent."""

    path: str
    headers: Mapping[str, str]
    body: Any
