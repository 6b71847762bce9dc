"""A key's text where it must not be (KY-5)."""

from itertools import islice

from apps.api import key_text, keys
from apps.api.call import Call

MOST_MARKED = 5


def shows_a_key(call: Call, text: str) -> bool:
    """Whether the text holds what looks like a key. Real ones are marked as exposed, a few of them: this is before the toll."""
    shown = {match.group() for match in islice(key_text.PATTERN.finditer(text), MOST_MARKED)}
    for key in shown:
        keys.mark_exposed(key, request_id=call.entrance.request_id, ip=call.entrance.ip)
    return bool(shown)
