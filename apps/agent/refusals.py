"""Why a door of the assistant refuses (CH-1), one function for each reason. What is not yours and what is not there is one answer."""

from typing import Any, Literal

from apps.agent.tools import module
from apps.api import people, schemas
from apps.api.problems import Problem


def impersonated() -> Problem:
    """PS-6: a chat holds what was looked up under the person's rights, and its limits are theirs."""
    return Problem("impersonated", "Somebody looks at the site as this person. Chats are open to the person alone.")


def unauthorized(reason: people.Refused) -> Problem:
    """PS-3."""
    return Problem("unauthorized", people.REASONS[reason], reason=reason)


def forbidden() -> Problem:
    """The module, the permission or the person's switch: which of them is the operator's business."""
    return Problem("forbidden", "The assistant is not open to this person.")


def not_found() -> Problem:
    """Another's, a deleted one, one that never was, and what is no uuid."""
    return Problem("not_found", "Not found.")


def turn_running() -> Problem:
    return _own("turn_running", "The assistant is still answering in this chat. Nothing was stored.")


def invalid_cursor() -> Problem:
    return _own("invalid_cursor", "The cursor is none of this list, or more than one of them was given.")


def content_invalid(reason: Literal["blank", "too_long", "unreadable"], detail: str, **context: Any) -> Problem:
    """A person's text that is not stored."""
    return _own("content_invalid", detail, reason=reason, **context)


def invalid(pointer: str, detail: str) -> Problem:
    """Another member of a body, or parameter of a URL, that is not what it must be."""
    return Problem("validation_failed", "The input is not accepted.", errors=[schemas.fault(pointer, detail)])


def _own(code: str, detail: str, **context: Any) -> Problem:
    return Problem(code, detail, kind=module.problems[code], **context)
