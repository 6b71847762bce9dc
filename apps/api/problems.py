"""Refusals and errors: core's codes (PR-2), the one exception that a step raises, and its RFC 9457 document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from django.conf import settings
from django.utils.translation import gettext_noop as _

Retry = Literal["same_key", "later", "new_key", "never"]

MEDIA_TYPE = "application/problem+json"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One problem code, its title in English, which pages translate.

    `retry` tells a machine what to do next (PR-4); a single problem may say otherwise.
    """

    code: str
    status: int
    title: str
    retry: Retry = "never"


def _core(*kinds: Kind) -> dict[str, Kind]:
    return {kind.code: kind for kind in kinds}


CORE = _core(
    Kind(code="bad_request", status=400, title=_("Bad request")),
    Kind(code="invalid_json", status=400, title=_("Invalid JSON")),
    Kind(code="credential_in_url", status=400, title=_("Credential in the URL")),
    Kind(code="credential_in_body", status=400, title=_("Credential in the body")),
    Kind(code="unauthorized", status=401, title=_("Unauthorized")),
    Kind(code="forbidden", status=403, title=_("Forbidden")),
    Kind(code="impersonated", status=403, title=_("Impersonated session")),
    Kind(code="api_disabled", status=403, title=_("API disabled")),
    Kind(code="module_write_disabled", status=403, title=_("Writes of this module are disabled")),
    Kind(code="not_found", status=404, title=_("Not found")),
    Kind(code="module_disabled", status=404, title=_("Module disabled")),
    Kind(code="method_not_allowed", status=405, title=_("Method not allowed")),
    Kind(code="not_acceptable", status=406, title=_("Not acceptable")),
    Kind(code="idempotency_in_progress", status=409, title=_("The first call is still running"), retry="same_key"),
    Kind(code="idempotency_outcome_unknown", status=409, title=_("Outcome unknown")),
    Kind(code="confirm_token_invalid", status=409, title=_("Confirmation code invalid")),
    Kind(code="conflict", status=409, title=_("Conflict"), retry="same_key"),
    Kind(code="body_too_large", status=413, title=_("Body too large")),
    Kind(code="unsupported_media_type", status=415, title=_("Unsupported media type")),
    Kind(code="validation_failed", status=422, title=_("Validation failed")),
    Kind(code="too_many_items", status=422, title=_("Too many items")),
    Kind(code="idempotency_key_reused", status=422, title=_("Idempotency key reused"), retry="new_key"),
    Kind(code="rate_limited", status=429, title=_("Rate limited"), retry="later"),
    Kind(code="internal_error", status=500, title=_("Internal error"), retry="same_key"),
    Kind(code="maintenance", status=503, title=_("Maintenance"), retry="later"),
    Kind(code="unavailable", status=503, title=_("Unavailable"), retry="same_key"),
)

# Statuses that Django or a server answers by itself, as codes; any other one falls to its class of a hundred.
BY_STATUS = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    413: "body_too_large",
    415: "unsupported_media_type",
    429: "rate_limited",
    503: "unavailable",
}


class Problem(Exception):
    """A refusal with a code of core or of a module. `context` stands beside the standard members of the document."""

    # The text of a body that was refused unread: a key may stand in it.
    unread: str = ""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        kind: Kind | None = None,
        retry: Retry | None = None,
        headers: Mapping[str, str] | None = None,
        **context: Any,
    ) -> None:
        super().__init__(code)
        self.kind = kind or CORE[code]
        self.detail = detail
        self.retry: Retry = retry or self.kind.retry
        self.headers = dict(headers or {})
        self.context = context

    @property
    def code(self) -> str:
        return self.kind.code


def document(problem: Problem, request_id: str | None) -> dict[str, Any]:
    """The problem as RFC 9457 has it. The context never replaces a standard member."""
    return {
        **problem.context,
        "type": type_url(problem.code),
        "title": problem.kind.title,
        "status": problem.kind.status,
        "detail": problem.detail,
        "code": problem.code,
        "retry": problem.retry,
        "request_id": request_id,
    }


def page_url(path: str) -> str:
    """A page of this server."""
    return f"{getattr(settings, 'BASE_URL', '')}{path}"


def type_url(code: str) -> str:
    """The page of this server that explains the code."""
    return f"{getattr(settings, 'BASE_URL', '')}/problems/{code}"


def of_status(status: int, detail: str = "") -> Problem:
    """The problem for a status that was decided outside the gate (a missing route, a wrong method, a crash)."""
    code = BY_STATUS.get(status, "bad_request" if status < 500 else "internal_error")
    kind = CORE[code]
    if kind.status != status:
        kind = Kind(code=code, status=status, title=kind.title, retry=kind.retry)
    # A crash outside the gate may have come after a committed write: nobody may be told to repeat it.
    return Problem(code, detail or f"{kind.title}.", kind=kind, retry="never" if status == 500 else None)
