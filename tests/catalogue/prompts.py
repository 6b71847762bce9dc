"""Calls that must be confirmed: the prompt, and the same call with its code."""

from typing import Any

from tests.api.factories import Machine


def prompt(machine: Machine, tool: str, body: dict[str, Any]) -> dict[str, Any]:
    """What `catalogue.<tool>` asks before it does this."""
    answer = machine.call(f"catalogue.{tool}", body)
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found.get("status")) == (200, "confirmation_required"), answer.content
    return found


def confirmed(machine: Machine, tool: str, body: dict[str, Any]) -> Any:
    """The answer to the call with the code of its prompt."""
    code = prompt(machine, tool, body)["confirm_token"]
    return machine.call(f"catalogue.{tool}", {**body, "confirm_token": code})
