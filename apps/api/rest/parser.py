"""DRF's only parser here: the strict reader. No view of this API can reach a lenient one."""

from typing import Any

from django.http import HttpRequest
from rest_framework.parsers import BaseParser

from apps.api import doorway


class StrictJSONParser(BaseParser):
    """The body of the request itself, not DRF's stream: a chunked body would be empty there."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> dict[str, Any]:
        request: HttpRequest = getattr(stream, "_request", stream)
        return doorway.read_json(request)
