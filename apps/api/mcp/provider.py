"""What a host may serve over MCP beside its tools (MC-5): prompts, resources, completions, and reads that answer images or ask the client.

`settings.MCP_PROVIDER` names a `Provider`: an object, or a class that is called without arguments. Without it this server has none of that.
It stands behind the gate and can't widen it: see docs/how-to/extend-mcp.md.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Protocol

import jsonschema_rs
from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from apps.api import registry, schemas
from apps.api.call import Actor

# What a provider may answer, each with the capability that stands for it. Tools, handshake and the rest are this server's own.
METHODS: Mapping[str, str] = {
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "completion/complete": "completions",
}

_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NOTHING: Mapping[str, Any] = {"type": "object", "properties": {}}


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A read of the provider's own. Its arguments are held to the schema, which is closed at its root."""

    name: str
    title: str
    description: str
    input_schema: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @cached_property
    def schema(self) -> dict[str, Any]:
        return schemas.closed(self.input_schema, write=False, client_token=None)

    @cached_property
    def validator(self) -> jsonschema_rs.Validator:
        return schemas.compiled(self.schema)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked, by a key that holds the scope and has paid. `params` are the protocol's, without what the fields below say.

    `capabilities` are the client's for this request (2026-07-28), `answers` what it said to the last question, by name, and `state` is
    what that question kept. A first request has neither, and a client may send answers without a state.
    """

    actor: Actor
    scopes: frozenset[str]
    method: str
    params: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    answers: Mapping[str, Mapping[str, Any]]
    state: Any = None


@dataclass(frozen=True, kw_only=True)
class Question:
    """Asks the client instead of answering: `elicitation/create`, `sampling/createMessage` or `roots/list`, each by a name of one's own.

    `state` is a JSON value that comes back with the answers: signed, for the same caller and the same request, for ten minutes. It can
    be sent more than once, so it confirms nothing.
    """

    requests: Mapping[str, Mapping[str, Any]]
    state: Any = None


@dataclass(frozen=True, kw_only=True)
class Unknown:
    """There is no such prompt or resource, or its arguments don't fit. The client is told, with the data."""

    message: str
    data: Mapping[str, Any] | None = None


Reply = Mapping[str, Any] | Question | Unknown


class Provider(Protocol):
    """`scope` is the API scope that a key needs for any of it, `methods` are those of METHODS that it answers."""

    scope: str
    methods: Collection[str]
    tools: Sequence[Tool]

    def answer(self, request: Request) -> Reply:
        """The result as the revision has it; of `tools/call` the one with `content`. No database can be written in here.

        Whatever it raises is an internal error, and its text goes to the log alone.
        """


def current() -> Provider | None:
    """The host's provider. Raises ImproperlyConfigured for one that is none; a check says so at start-up."""
    name = getattr(settings, "MCP_PROVIDER", "")
    return _named(name) if name else None


@cache
def _named(name: str) -> Provider:
    try:
        found = import_string(name)
        found = found() if isinstance(found, type) else found
        faults = list(_faults(found))
    except Exception as error:
        raise ImproperlyConfigured(f"MCP_PROVIDER: {name} can't be used: {error!r}") from error
    if faults:
        raise ImproperlyConfigured(f"MCP_PROVIDER: {faults[0]}.")
    provider: Provider = found
    return provider


def _faults(found: Any) -> Iterator[str]:
    if not isinstance(found.scope, str) or not callable(found.answer):
        yield "scope is a text and answer a method"
    for method in found.methods:
        if method not in METHODS:
            yield f"{method!r} is none of the methods that it may answer"
    names = [tool.name for tool in found.tools]
    if len(names) != len(set(names)):
        yield "a tool is declared twice"
    for tool in found.tools:
        if not _NAME.fullmatch(tool.name):
            yield f"the name {tool.name!r} is none that every client reads"
        if tool.schema["type"] != "object" or tool.validator is None:
            yield f"the schema of {tool.name} is no object's"


def check_provider(**_: Any) -> list[checks.CheckMessage]:
    """A provider that can't be used stops the start, and so does one whose scope or tools are not what they seem."""
    try:
        found = current()
    except ImproperlyConfigured as error:
        return [_error("E030", str(error), "see docs/how-to/extend-mcp.md")]
    return [] if found is None else list(_misfits(found))


def _misfits(found: Provider) -> Iterator[checks.CheckMessage]:
    known = registry.current()
    if found.scope not in known.by_scope:
        yield _error("E031", f"MCP_PROVIDER: no tool is on its scope {found.scope}", "name a scope that a key can hold")
    for tool in found.tools:
        if known.find("admin", known.canonical("admin", tool.name)):
            yield _error(
                "E032", f"MCP_PROVIDER: a module has the tool {tool.name}, which is the one called", "rename it"
            )


def _error(number: str, fault: str, mend: str) -> checks.Error:
    return checks.Error(fault, hint=f"Mend: {mend}.", id=f"api.{number}")
