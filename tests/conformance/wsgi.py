"""The program with a key put before every request: the suite sends none."""

import os
from collections.abc import Iterable
from typing import Any

from config.wsgi import application as program

_AUTHORIZATION = f"Bearer {os.environ['CONFORMANCE_KEY']}"


def application(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """The program's own answer."""
    environ["HTTP_AUTHORIZATION"] = _AUTHORIZATION
    return program(environ, start_response)
