"""Django's WSGI handler, for whatever header a client sends."""

from typing import Any

from django.core.handlers.wsgi import WSGIHandler, WSGIRequest


class Request(WSGIRequest):
    """A Content-Type whose parameters can't be read is one that says nothing: Django would fail before any middleware."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]  # not in the stubs
        except (ValueError, LookupError):
            self.content_type, self.content_params = "", {}


class Handler(WSGIHandler):
    """The application of both kinds of process."""

    request_class = Request
