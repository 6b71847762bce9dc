"""The operations: one of each tool with a path of its own, the listing, this document, and the REST face of approvals."""

from collections.abc import Iterable
from typing import Any

from apps.api import listing, pricing
from apps.api.openapi import examples, headers, limits, samples, shapes
from apps.api.openapi.refusals import Responses
from apps.api.tool import Tool

ABOUT = "about"


def of_tool(
    tool: Tool, responses: Responses, *, security: list[dict[str, Any]], faces: Iterable[str]
) -> dict[str, Any]:
    """`POST …/tools/<name>`. `faces`: the operations of this document by which an approval is followed."""
    replays = tool.is_write and not tool.is_direct and tool.replay
    return {
        "operationId": tool.alias,
        "summary": str(tool.title),
        "description": f"{tool.description}\n\n{_facts(tool)}".strip(),
        "tags": [tool.module.key],
        "security": security,
        **({"parameters": [headers.IDEMPOTENCY_KEY]} if replays else {}),
        "requestBody": _body(tool),
        "responses": {"200": _answers(tool, replayable=replays, faces=faces), **responses.of_tool(tool)},
        "x-tool": {
            "name": tool.name,
            "scope": tool.scope,
            "annotations": tool.hints,
            "danger": listing.danger(tool),
            "price": pricing.rule(tool),
        },
    }


def of_listing(responses: Responses, *, security: list[dict[str, Any]]) -> dict[str, Any]:
    """`GET …/tools`."""
    return {
        "operationId": "listTools",
        "summary": "List the tools",
        "description": "The tools that you may call, by name, each with its closed input schema. Costs 1 unit.",
        "tags": [ABOUT],
        "security": security,
        "responses": {
            "200": _ok("The tools.", _referred("Tools"), _example("Tools", samples.OF_SHAPE["Tools"])),
            **responses.of_listing(),
        },
    }


def of_document(responses: Responses, *, security: list[dict[str, Any]]) -> dict[str, Any]:
    """`GET …/openapi.json`."""
    return {
        "operationId": "getOpenAPI",
        "summary": "This document",
        "description": "The OpenAPI document of the tools that you may call. Costs 1 unit.",
        "tags": [ABOUT],
        "security": security,
        "responses": {
            "200": _ok("The document.", limits.bounded(shapes.DOCUMENT), _example("The document", samples.DOCUMENT)),
            **responses.of_listing(),
        },
    }


def of_approval(tool: Tool, responses: Responses, *, security: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """`GET` or `DELETE …/approvals/{approval_id}`, which calls the tool."""
    shown = _example("The approval", samples.OF_CORE[tool.name])
    return {
        "operationId": name,
        "summary": f"{tool.title} (by its path)",
        "description": f"{tool.description}\n\nThe same as the tool `{tool.name}`.",
        "tags": [tool.module.key],
        "security": security,
        "responses": {"200": _ok("The approval.", _referred("Approval"), shown), **responses.of_path()},
    }


APPROVAL_ID: dict[str, Any] = {
    "name": "approval_id",
    "in": "path",
    "required": True,
    "description": "The `approval_id` of the pending answer.",
    "schema": {"type": "string", "format": "uuid", "maxLength": 36},
    "example": samples.UUID_TEXT,
}


def _body(tool: Tool) -> dict[str, Any]:
    schema = limits.of_input(tool)
    found = examples.of_input(tool)
    media: dict[str, Any] = {"schema": schema}
    if found is not None:
        media["examples"] = {"call": {"summary": "Call", "value": found}}
        if tool.is_write and not tool.is_direct:
            media["examples"]["preview"] = {"summary": "Preview only", "value": {**found, "dry_run": True}}
    # An empty body is `{}` (IN-1).
    return {"required": bool(schema.get("required")), "content": {"application/json": media}}


def _answers(tool: Tool, *, replayable: bool, faces: Iterable[str]) -> dict[str, Any]:
    """The handler's answer, and for a write those that come instead of it, told apart by `status`."""
    result = _result(tool)
    example = examples.of_output(tool.output_schema) or samples.OF_CORE.get(tool.name)
    shown = {} if example is None else _example("The tool's answer", example)
    instead = _instead(tool)
    for name in instead:
        value = samples.OF_SHAPE[name]
        shown[value["status"]] = {"summary": f"status {value['status']}", "value": value}
    schema = {"anyOf": [result, *map(_referred, instead)]} if instead else result
    statuses = ", ".join(f"`{samples.OF_SHAPE[name]['status']}`" for name in instead)
    text = (
        f"The tool's answer, or instead of it an object whose `status` is {statuses}."
        if instead
        else "The tool's answer."
    )
    # Who asks for the same again gets the approval that waits, marked (AP-1), whether the tool takes a key or not.
    is_queued = "PendingApproval" in instead
    found = _ok(text, schema, shown, replayable=replayable or is_queued)
    return {**found, "links": {name: _link(name) for name in faces}} if is_queued and faces else found


def _link(operation: str) -> dict[str, Any]:
    return {
        "operationId": operation,
        "parameters": {"approval_id": "$response.body#/approval_id"},
        "description": "Where `status` is `pending_approval`.",
    }


def _result(tool: Tool) -> dict[str, Any]:
    if tool.output_schema is not None:
        found: dict[str, Any] = limits.bounded(tool.output_schema)
        return found
    return shapes.OF_CORE.get(tool.name, {"type": "object", "additionalProperties": True})


def _instead(tool: Tool) -> list[str]:
    if not tool.is_write or tool.is_direct:
        return []
    confirmation = [] if tool.danger is None else ["ConfirmationRequired"]
    return ["Preview", *confirmation, *(["PendingApproval"] if tool.audience == "admin" else [])]


def _example(summary: str, value: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"summary": summary, "value": value}}


def _ok(text: str, schema: dict[str, Any], shown: dict[str, Any], *, replayable: bool = False) -> dict[str, Any]:
    media = {"schema": schema, **({"examples": shown} if shown else {})}
    return {
        "description": text,
        "headers": headers.of(200, replayable=replayable),
        "content": {"application/json": media},
    }


def _referred(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _facts(tool: Tool) -> str:
    facts = [
        f"Scope `{tool.scope}`." if tool.scope else "",
        "A write." if tool.is_write else "A read.",
        _DANGER[listing.danger(tool)],
    ]
    price = pricing.rule(tool)
    if price["declared"]:
        facts.append("The price goes by the input.")
    elif price["rows_per_unit"]:
        facts.append(f"Costs 1 unit per {price['rows_per_unit']} rows of its longest list, at least 1.")
    else:
        facts.append("Costs 1 unit.")
    if tool.max_items is not None:
        facts.append(f"At most {tool.max_items} rows.")
    return " ".join(fact for fact in facts if fact)


_DANGER = {
    "none": "",
    "conditional": "Some calls must be confirmed with the code that the first answer carries.",
    "always": "Must be confirmed with the code that the first answer carries.",
}
