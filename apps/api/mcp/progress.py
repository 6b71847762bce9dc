"""What a handler reports, as the protocol's progress (MC-1): a number that only rises, perhaps its end, perhaps a sentence."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from apps.api import strict_json
from apps.api.mcp.protocol import Message

Token = str | int
Number = int | float

# It comes back with every notification.
_LONGEST_TOKEN = 256
_LONGEST_MESSAGE = 1_000


@dataclass(frozen=True, kw_only=True)
class Step:
    """One report that is told. `counted`: it said no number, so this one counts the reports."""

    progress: Number
    total: Number | None = None
    message: str | None = None
    counted: bool = False


def token_of(message: Message) -> Token | None:
    """What the client wants its notifications marked with; None: it asked for none, or not by a string or an integer."""
    found = message.meta.get("progressToken")
    if not isinstance(found, str | int) or isinstance(found, bool):
        return None
    return found if len(strict_json.dumps(found)) <= _LONGEST_TOKEN else None


def step_of(reported: Any, *, after: Step | None) -> Step | None:
    """The report as the step after that one; None when it does not rise above it, as when a handler is run again.

    A number is a share of one; an object has `done`, `total` and `message`, each if it likes. Raises nothing: whether somebody listens
    must not change what becomes of a call.
    """
    said: Mapping[str, Any] = reported if isinstance(reported, dict) else {"done": reported, "message": reported}
    done, total, message = _number(said.get("done")), _number(said.get("total")), _text(said.get("message"))
    if done is None:
        return _counted(message, after)
    if after is not None and done <= after.progress:
        return None
    return Step(progress=done, total=total if isinstance(reported, dict) else 1, message=message)


def notification(token: Token, step: Step) -> bytes:
    """The message that tells it."""
    total = {} if step.total is None else {"total": step.total}
    words = {} if step.message is None else {"message": step.message}
    params = {"progressToken": token, "progress": step.progress, **total, **words}
    return strict_json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def _counted(message: str | None, after: Step | None) -> Step | None:
    """Without a number it is one report more, unless another one said a number: its end would be passed by counting on."""
    if after is not None and not after.counted:
        return None
    return Step(progress=1 if after is None else after.progress + 1, message=message, counted=True)


def _number(value: Any) -> Number | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    fits = strict_json.MIN_INT <= value <= strict_json.MAX_INT if isinstance(value, int) else math.isfinite(value)
    return value if fits else None


def _text(value: Any) -> str | None:
    """What UTF-8 can carry of it."""
    if not isinstance(value, str):
        return None
    return value[:_LONGEST_MESSAGE].encode("utf-8", "replace").decode()
