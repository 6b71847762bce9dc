"""The outermost middleware: every request has an id, every answer carries it, and every request leaves one line."""

import re
import time
import uuid
from collections.abc import Callable

import structlog
from django.http import HttpRequest, HttpResponseBase

log = structlog.get_logger("access")

_SANE = re.compile(r"[A-Za-z0-9._-]{1,64}")


class RequestId:
    """Sets `request.request_id`, from a sane X-Request-ID or made here.

    The context is cleared when a request begins and not when it ends: what a worker says after the answer, for instance
    that a connection could not be closed, still names the request.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        started = time.perf_counter()
        request_id = request.META.get("HTTP_X_REQUEST_ID", "")
        if not _SANE.fullmatch(request_id):
            request_id = uuid.uuid4().hex
        request.request_id = request_id  # type: ignore[attr-defined]  # Django's way of extending the request
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request_id=request_id)
        response = self.get_response(request)
        response.headers["X-Request-ID"] = request_id
        log.info(
            "request",
            method=request.method,
            # Without the query string: that is where people put secrets.
            path=request.path[:300],
            status=response.status_code,
            ms=round((time.perf_counter() - started) * 1000, 1),
        )
        return response
