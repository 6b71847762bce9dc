"""Credentials where they must not be (KY-5): in a URL, or a key's text in the input."""

from itertools import islice
from urllib.parse import parse_qsl, unquote

from apps.api import key_text, keys

MOST_MARKED = 5

# Names of a URL's fields that carry a credential elsewhere, in any case.
CREDENTIAL_NAMES = frozenset(
    {"api_key", "apikey", "api-key", "key", "token", "access_token", "auth", "authorization", "secret"}
)


def in_url(path: str, query_string: str, *, request_id: str, ip: str) -> bool:
    """By name, and by the shape of a key anywhere in the URL."""
    shown = shows_a_key(unquote(f"{path}?{query_string}"), request_id=request_id, ip=ip)
    fields = parse_qsl(query_string, keep_blank_values=True)
    return shown or any(name.lower() in CREDENTIAL_NAMES for name, _ in fields)


def shows_a_key(text: str, *, request_id: str, ip: str) -> bool:
    """Whether the text holds what looks like a key. Real ones are marked as exposed, a few of them: this is before the toll."""
    shown = {match.group() for match in islice(key_text.PATTERN.finditer(text), MOST_MARKED)}
    for key in shown:
        keys.mark_exposed(key, request_id=request_id, ip=ip)
    return bool(shown)
