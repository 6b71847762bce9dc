"""One call on its way through the gate: what came in at the door, who calls, what the steps found, and the outcome."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import get_supported_language_variant
from django.utils.translation.trans_real import parse_accept_lang_header

from apps.api.people import Scope
from apps.api.problems import Problem

if TYPE_CHECKING:
    from apps.api.audit import Audit
    from apps.api.credentials import Facts, VerifiedKey
    from apps.api.idempotency import Claim
    from apps.api.models import Approval
    from apps.api.ratelimit import Level
    from apps.api.switches import Switches
    from apps.api.tool import Tool

Audience = Literal["admin", "public"]
Allow = Literal["read", "all"]


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """What the transport knows of a request before anything is decided. `ip` is the caller's address (KY-6).

    A session's call has only what its caller gave (LS-7): empty texts, no hosts, and None for the languages and the currency.
    """

    request_id: str
    ip: str
    path: str = ""
    query_string: str = ""
    authorization: str | None = None
    idempotency_key: str | None = None
    accept_language: str | None = ""
    currency: str | None = None
    base_url: str | None = None
    hosts: tuple[str, ...] = ()
    http: HttpRequest | None = None

    @cached_property
    def language(self) -> str | None:
        """The first language of Accept-Language that the project has, else the project's own."""
        if self.accept_language is None:
            return None
        for code, _ in parse_accept_lang_header(self.accept_language):
            try:
                return get_supported_language_variant(code)
            except LookupError:
                continue
        return settings.LANGUAGE_CODE


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who calls. `caller` is what the budget belongs to: the key family, the person, or the network of a public caller (see `callers`)."""

    kind: Literal["key", "user", "public"]
    caller: str
    ip: str
    key: "VerifiedKey | None" = None
    scope: Scope | None = None


@dataclass(frozen=True, kw_only=True)
class OnBehalf:
    """Which live session a call is made for, and what asks on its behalf (section 17)."""

    ref: object
    impersonated: bool
    allow: Allow
    via: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A call that ended well. `body` is `result` encoded once; every transport sends these bytes."""

    result: dict[str, Any]
    body: bytes
    outcome: str = "ok"  # the entry's word: ok, preview, confirmation_required, pending_approval
    replayed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tools that a caller may call, by name."""

    tools: "tuple[Tool, ...]"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A call that was refused or failed. `body` is the problem document, encoded once."""

    problem: Problem
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    replayed: bool = False

    @property
    def status(self) -> int:
        return self.problem.kind.status


Outcome = Answer | Refusal

REPLAYED = {"Idempotent-Replayed": "true"}


@dataclass(kw_only=True)
class Call:
    """The state that the steps share. A field is set by the step that its comment names, and read by later ones only."""

    entrance: Entrance
    audience: Audience
    name: str = ""
    input: Any = None  # a JSON value, or a function without arguments that reads it (`read_input`)
    resolve_name: Callable[[str], str] | None = None
    idempotency_header: bool = True
    on_behalf: OnBehalf | None = None  # of a session's call alone
    redeems: bool = False  # the person confirms: `asked_uuid` is the row that they mean, None when it can't be one
    asked_uuid: UUID | None = None
    listener: Callable[[Any], None] | None = None  # of a transport that tells its client how far a direct call came
    elicited: bool = False  # the transport asked by itself, and a state that it signed names the row: `asked_uuid`
    approval: "Approval | None" = None  # of an approved call alone: the row that this attempt runs
    approvers: tuple[str, ...] = ()  # the ids of those whose votes count
    started: float = field(default_factory=time.perf_counter)

    read_strictly: bool = False  # `read_input`: the value comes from the strict reader
    facts: "Facts | None" = None  # `switch`: the settings and the key's row, from one statement
    switches: "Switches | None" = None  # `switch`
    actor: Actor | None = None  # `authenticate`
    entry_paid: bool = False  # `charge_entry`: a visitor's unit
    scopes: frozenset[str] = frozenset()  # `look_up`
    tool: "Tool | None" = None  # `look_up`
    typed: Any = None  # `validate`: the input as the handler takes it
    control: Mapping[str, Any] = field(default_factory=dict)  # `validate`: a write's control fields
    input_hash: str = ""  # `validate`: of a write's input without them
    extra: Mapping[str, Any] | None = None  # what the host added to the context, asked once
    queued: "Approval | None" = None  # `danger`: the approval that the call waits for
    claim: "Claim | None" = None  # `asked_before`
    confirmation_uuid: UUID | None = None  # `run`: the row that the call made or redeemed
    replaces_uuid: UUID | None = None  # `run`: the row whose values changed, where a new one took its place
    ran_outside: bool = False  # `run`: an external handler was started
    settled: bool = False  # the outcome's record and entry are committed
    unknown: bool = False  # the connection broke during COMMIT
    levels: "dict[str, Level]" = field(default_factory=dict)  # the charges, by policy
    audit: "Audit | None" = None  # `open_audit`

    @property
    def found_tool(self) -> "Tool":
        assert self.tool is not None  # noqa: S101 - `look_up` came first
        return self.tool

    @property
    def dry_run(self) -> bool:
        return self.control.get("dry_run") is True

    @property
    def is_confirmation(self) -> bool:
        """The second word for a call that was held: a code, or the person's own confirmation."""
        return self.redeems or self.elicited or "confirm_token" in self.control

    # What must happen at the end: inside the effect's transaction after the answer is encoded, or after everything.
    before_commit: list[Callable[[Outcome], None]] = field(default_factory=list)
    afterwards: list[Callable[[Outcome], None]] = field(default_factory=list)
