"""System checks: without a usable MAC key no entry could be written, and so no effect committed."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core import checks


@checks.register(checks.Tags.security)
def mac_keys(**_: Any) -> list[checks.CheckMessage]:
    """ACTIVITY_MAC_KEYS is {id: secret}, the current key first."""
    keys = getattr(settings, "ACTIVITY_MAC_KEYS", None)
    if isinstance(keys, Mapping) and keys and all(0 < len(name) <= 16 <= len(secret) for name, secret in keys.items()):
        return []
    return [
        checks.Error(
            "ACTIVITY_MAC_KEYS names no usable key.",
            hint="Set it to {id: secret}, the current one first: ids of at most 16 characters, secrets of at least 16.",
            id="activity.E001",
        )
    ]
