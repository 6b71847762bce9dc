"""The assistant as a module of the gate: its on/off box and the codes that its doors refuse with (PR-2). It has no tools of its own."""

from apps.api import Module

module = Module(
    key="agent",
    name="Assistant",
    problems={
        "turn_running": (409, "The assistant is still answering", "later"),
        "invalid_cursor": (422, "Invalid cursor"),
        "content_invalid": (422, "Text not accepted"),
    },
)
