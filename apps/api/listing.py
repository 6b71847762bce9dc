"""A tool as a listing shows it (SPEC 26)."""

from typing import Any

from apps.api import pricing
from apps.api.tool import Tool


def describe(tool: Tool) -> dict[str, Any]:
    """`{"name", "title", "description", "scope", "input_schema", "output_schema", "annotations", "danger", "price"}`."""
    return {
        "name": tool.name,
        "title": str(tool.title),
        "description": str(tool.description),
        "scope": tool.scope,
        "input_schema": tool.input_schema,
        "output_schema": tool.output_schema,
        "annotations": tool.hints,
        "danger": danger(tool),
        "price": pricing.rule(tool),
    }


def danger(tool: Tool) -> str:
    """none, conditional or always."""
    if tool.danger is None:
        return "none"
    return "always" if tool.danger == "always" else "conditional"
