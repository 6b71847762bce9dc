"""People whose rules fail, for `API_PEOPLE`."""

from typing import Any


def session(ref: object, switches: Any) -> Any:
    raise RuntimeError("a rule that raises")
