"""When two inputs are the same (ID-1): one hash over the tool and the received input, whatever the order of members."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def digest(tool: str, received: Mapping[str, Any]) -> str:
    """SHA-256 in hex. Members are sorted by code point; a number counts by its value; a string counts as it is.

    So `1`, `1.0` and `1e0` are one, `-0.0` is `0`, a large integer and the same value as a double are one, while `"é"` in its composed
    and its decomposed form are two. Control fields are left out by the caller.
    """
    text = json.dumps([tool, _by_value(dict(received))], sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _by_value(value: Any) -> Any:
    if isinstance(value, dict):  # asking for a Mapping costs as much as all the rest
        return {name: _by_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_by_value(part) for part in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value
