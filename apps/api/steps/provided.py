"""What the host's own code answers in place of a tool (MC-5): held to an API scope, and to what a read is held to."""

from collections.abc import Callable
from typing import TypeVar

from apps.api import guard, handlers
from apps.api.call import Call
from apps.api.problems import Problem

T = TypeVar("T")


def hold(call: Call, *, scope: str) -> None:
    """`find_scopes` came first."""
    if scope not in call.scopes:
        raise Problem("forbidden", "The key does not hold this scope.", scope=scope)


def answer(call: Call, *, ask: Callable[[], T], given: list[T]) -> None:
    """Puts what `ask` gives into `given`. A refusal of the gate is not the host's to raise."""
    try:
        with guard.read_only():
            given.append(ask())
    except Problem as problem:
        raise handlers.Odd("the host's code raised a problem of the gate") from problem
