"""The document of a set of tools: deterministic, and built once for each set, address and state of the times."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.utils.translation import override

from apps.api import handlers
from apps.api.call import Answer, Audience
from apps.api.openapi import about, headers, operations, shapes
from apps.api.openapi.about import Times
from apps.api.openapi.refusals import Responses
from apps.api.switches import Switches
from apps.api.tool import Tool

VERSION = "1"
SECURITY: dict[Audience, list[dict[str, Any]]] = {"admin": [{"ApiKey": []}], "public": [{}]}
BASE: dict[Audience, str] = {"admin": "/api/v1", "public": "/api/v1/public"}


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
            "description": about.text(audience, times),
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
    faces = {method: (by_name[name], operation) for method, name, operation in _APPROVALS if name in by_name}
    followed = tuple(operation for _, operation in faces.values())
    for tool in tools:
        path = f"{base}/tools/{tool.name}"
        found[path] = {"post": operations.of_tool(tool, responses, security=security, faces=followed)}
    if faces:
        found[f"{base}/approvals/{{approval_id}}"] = {
            "parameters": [operations.APPROVAL_ID],
            **{
                method: operations.of_approval(tool, responses, security=security, name=operation)
                for method, (tool, operation) in faces.items()
            },
        }
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
