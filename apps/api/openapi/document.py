"""The document of a set of tools: deterministic, and built once for each set, address and state of the times."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.translation import override

from apps.api import doorway, handlers
from apps.api.call import Answer, Audience
from apps.api.openapi import headers, operations, shapes
from apps.api.openapi.refusals import Responses
from apps.api.switches import Switches
from apps.api.tool import Tool

VERSION = "1"
SECURITY: dict[Audience, list[dict[str, Any]]] = {"admin": [{"ApiKey": []}], "public": [{}]}
BASE: dict[Audience, str] = {"admin": "/api/v1", "public": "/api/v1/public"}


class Times(NamedTuple):
    """The operator's periods and budgets that a client has to know."""

    idempotency_hours: int
    code_minutes: int
    approval_hours: int
    start_hours: int
    confirmation_days: int
    approval_input_days: int
    key_budget: int
    network_budget: int
    token_budget: int

    @classmethod
    def of(cls, now: Switches) -> "Times":
        return cls(
            idempotency_hours=now.idempotency_retention,
            code_minutes=now.api_code_minutes,
            approval_hours=now.api_approval_hours,
            start_hours=now.api_start_hours,
            confirmation_days=now.confirmation_retention,
            approval_input_days=now.approval_input_retention,
            key_budget=now.api_key_budget,
            network_budget=now.api_network_budget,
            token_budget=now.api_token_budget,
        )


def answer(tools: Iterable[Tool], audience: Audience, *, base_url: str, now: Switches) -> Answer:
    """The document for who may call these tools, with its bytes."""
    return _answer(tuple(tools), audience, base_url, Times.of(now))


@lru_cache(maxsize=64)
def _answer(tools: tuple[Tool, ...], audience: Audience, base_url: str, times: Times) -> Answer:
    # Machines are told English, whoever asked first.
    with override(settings.LANGUAGE_CODE):
        return handlers.answer(_document(tools, audience, base_url, times), limit=None)


def _document(tools: tuple[Tool, ...], audience: Audience, base_url: str, times: Times) -> dict[str, Any]:
    security = SECURITY[audience]
    responses = Responses(audience=audience)
    paths = _paths(tools, audience, responses)
    components: dict[str, Any] = {
        "schemas": shapes.COMPONENTS,
        "headers": headers.COMPONENTS,
        "responses": dict(sorted(responses.components.items())),
    }
    if audience == "admin":
        components["securitySchemes"] = {"ApiKey": _SCHEME}
    document = {
        "openapi": "3.1.0",
        "info": {
            "title": getattr(settings, "API_TITLE", "Tollhouse"),
            "version": VERSION,
            "summary": "The tools that this key may call."
            if audience == "admin"
            else "The tools of visitors without a key.",
            "description": _about(audience, times),
        },
        "servers": [_server(base_url)],
        "security": security,
        "tags": _tags(tools),
        "paths": paths,
        "components": components,
    }
    return _used_only(document)


def _paths(tools: tuple[Tool, ...], audience: Audience, responses: Responses) -> dict[str, Any]:
    base, security = BASE[audience], SECURITY[audience]
    by_name = {tool.name: tool for tool in tools}
    found: dict[str, Any] = {
        f"{base}/tools": {"get": operations.of_listing(responses, security=security)},
        f"{base}/openapi.json": {"get": operations.of_document(responses, security=security)},
    }
    for tool in tools:
        found[f"{base}/tools/{tool.name}"] = {"post": operations.of_tool(tool, responses, security=security)}
    faces = {
        method: operations.of_approval(by_name[name], responses, security=security, name=operation)
        for method, name, operation in _APPROVALS
        if name in by_name
    }
    if faces:
        found[f"{base}/approvals/{{approval_id}}"] = {"parameters": [operations.APPROVAL_ID], **faces}
    return found


_APPROVALS = (("get", "system.get_approval", "getApproval"), ("delete", "system.cancel_approval", "cancelApproval"))

_SCHEME = {
    "type": "http",
    "scheme": "bearer",
    "bearerFormat": "th_(live|test)_…",
    "description": "A key of this server, as `Authorization: Bearer th_live_…`. Never in a URL, never in a body.",
}


def _tags(tools: tuple[Tool, ...]) -> list[dict[str, str]]:
    modules = {tool.module.key: str(tool.module.name) for tool in tools}
    own = [{"name": key, "description": f"The tools of the module {modules[key]}."} for key in sorted(modules)]
    return [{"name": operations.ABOUT, "description": "What you may call."}, *own]


def _server(base_url: str) -> dict[str, Any]:
    where = "A local one, for development." if settings.DEBUG else "Production."
    return {"url": base_url, "description": where, "x-internal": False}


def _used_only(document: dict[str, Any]) -> dict[str, Any]:
    """Without the components that nothing refers to."""
    used = set(_references({name: part for name, part in document.items() if name != "components"}))
    components = document["components"]
    while (
        more := {
            reference
            for section, name in used
            if section != "securitySchemes"
            for reference in _references(components[section][name])
        }
        - used
    ):
        used |= more
    kept = {
        section: {name: part for name, part in rows.items() if section == "securitySchemes" or (section, name) in used}
        for section, rows in components.items()
    }
    return {**document, "components": {section: rows for section, rows in kept.items() if rows}}


def _references(node: Any) -> Iterable[tuple[str, str]]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/components/"):
            _, _, section, name = reference.split("/")
            yield section, name
        for part in node.values():
            yield from _references(part)
    elif isinstance(node, list):
        for part in node:
            yield from _references(part)


def _about(audience: Audience, times: Times) -> str:
    return "\n\n".join(part.strip() for part in (_CALLS, *(_KEYS if audience == "admin" else _VISITORS))).format(
        **times._asdict(), mega=doorway.MAX_BODY // 1_000_000
    )


_CALLS = """
A call is a POST of a JSON object to the tool's own path. Paths work with and without a last slash.

**Input.** At most {mega} MB of strict JSON in UTF-8: no member twice, no NaN, integers of 64 bits. Unknown fields are refused.

**Refusals.** Every answer of 400 and above is `application/problem+json`. Decide by `code`; `retry` says whether and how to call again.
"""
_WRITES = """
**Writes.** `dry_run: true` answers a preview and changes nothing. A dangerous call is held: it answers `confirmation_required` with a code that is
good once and for {code_minutes} minutes, for the same input, while the previewed values are the same. A code stays listed for
{confirmation_days} days after its end.

**Idempotency.** A write with an `Idempotency-Key` (a header, or the field `idempotency_key`) runs once, whatever breaks in between; a repeat is
answered with the stored outcome, byte for byte, and marked `Idempotent-Replayed: true`. An outcome is kept for {idempotency_hours} hours from
its end.
"""
_KEYS = (
    _WRITES,
    """
**Approvals.** The writes of a key that requires approval answer `pending_approval`: people decide within {approval_hours} hours, and what they approve
starts within {start_hours} hours. `GET /api/v1/approvals/<approval_id>` says what became of it, `DELETE` takes it back. The input and the preview are
cleared {approval_input_days} days after the end.

**Budget.** In any 60 seconds {key_budget} units, or what the key has of its own; `RateLimit` says what is left. Every call costs at least 1 unit, a
refused one too.
""",
)
_VISITORS = (
    _WRITES,
    """
**Client tokens.** A field that a tool names takes a token of your own choice (16 to 128 characters): codes and idempotency keys belong to it.

**Budget.** In any 60 seconds {network_budget} units of your network, and {token_budget} of a client token. Every call costs at least 1 unit, a refused
one too.
""",
)
