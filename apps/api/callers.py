"""Whose a call is (SPEC 2): the key family, the person, or a public caller's client token. Records and codes belong to it."""

import hashlib

from apps.api import schemas
from apps.api.call import Call

_WORDS = {"key": "key", "user": "person"}


def of(call: Call) -> str | None:
    """The caller's name in tables and buckets; None for a public caller without a client token, whom nobody can tell apart."""
    if call.actor is not None and call.actor.kind != "public":
        return f"{_WORDS[call.actor.kind]}:{call.actor.caller}"
    token = client_token(call)
    return None if token is None else f"token:{hashlib.sha256(token.encode('utf-8', 'surrogatepass')).hexdigest()}"


def name(call: Call) -> str:
    """What an operator reads in a list."""
    actor = call.actor
    if actor is not None and actor.key is not None:
        return actor.key.name
    return actor.scope.name[:200] if actor is not None and actor.scope is not None else "public"


def client_token(call: Call) -> str | None:
    """The caller's token, where the tool names a field for one and it has the length of one."""
    field = call.tool.client_token if call.tool else None
    token = call.input.get(field) if field and isinstance(call.input, dict) else None
    shortest, longest = schemas.CLIENT_TOKEN_LENGTH
    return token if isinstance(token, str) and shortest <= len(token) <= longest else None
