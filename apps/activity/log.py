"""The one door of the activity log: `write` adds an entry in the caller's transaction, `verify` checks one.

The MAC of an entry is HMAC-SHA-256 over the canonical JSON of all its fields, so that a row that was changed, or made
without the key, is told from a true one, whatever database it went through.
"""

import hmac
import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC
from decimal import Decimal
from functools import lru_cache
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.utils import timezone

from apps.activity import actions
from apps.activity.models import Entry, Mode

__all__ = ["Actor", "Mode", "is_written", "verify", "write"]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """Who acted: `kind` is key, user, public or system; `name` is what people call them at that time."""

    kind: str
    uuid: str = ""
    name: str = ""


def write(  # noqa: PLR0913 - the members of an entry
    *,
    action: str,
    module: str = "",
    mode: Mode,
    actor: Actor,
    resource_type: str = "",
    resource_uuid: str = "",
    target: str = "",
    request_id: str = "",
    ip: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    uuid: UUID | None = None,
) -> Entry:
    """Add one entry with one INSERT, in the caller's transaction: it commits with the effect or not at all.

    Never input, preview, result or a secret. ValueError for an undeclared action and for metadata that is no JSON.
    """
    if not actions.is_declared(action):
        raise ValueError(f"{action!r} is no declared action.")
    entry = Entry(
        uuid=uuid or uuid4(),
        created_at=timezone.now(),
        action=action,
        module=module,
        mode=Mode(mode).value,
        actor_kind=actor.kind,
        actor_uuid=actor.uuid,
        actor_name=actor.name[:200],
        resource_type=resource_type,
        resource_uuid=resource_uuid,
        target=target[:200],
        request_id=request_id,
        ip=_address(ip),
        metadata=_stored(metadata) if metadata else {},
        mac_key_id=next(iter(settings.ACTIVITY_MAC_KEYS)),
    )
    entry.mac = _mac(entry, settings.ACTIVITY_MAC_KEYS[entry.mac_key_id])
    entry.save()
    return entry


def is_written(uuid: UUID) -> bool:
    """True when the entry that was to get this uuid is committed."""
    return Entry.objects.filter(pk=uuid).exists()


def verify(entry: Entry) -> bool:
    """True when the entry is as it was written. False too when its key is not among ACTIVITY_MAC_KEYS."""
    secret = settings.ACTIVITY_MAC_KEYS.get(entry.mac_key_id)
    return secret is not None and hmac.compare_digest(entry.mac.encode(), _mac(entry, secret).encode())


def _mac(entry: Entry, secret: str) -> str:
    """HMAC-SHA-256, hexadecimal, over the fields in their order: a JSON list can't be read in two ways."""
    fields = [
        str(entry.uuid),
        entry.created_at.astimezone(UTC).isoformat(timespec="microseconds"),
        entry.action,
        entry.module,
        entry.mode,
        entry.actor_kind,
        entry.actor_uuid,
        entry.actor_name,
        entry.resource_type,
        entry.resource_uuid,
        entry.target,
        entry.request_id,
        _address(entry.ip),
        _canonical(entry.metadata),
        entry.mac_key_id,
    ]
    return hmac.digest(secret.encode(), _ENCODER.encode(fields).encode(), "sha256").hex()


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))
_TOLERANT = json.JSONEncoder(allow_nan=False, default=str)


@lru_cache(maxsize=1024)
def _address(ip: str | None) -> str | None:
    """One spelling for each address: PostgreSQL and Django write some of them in another way."""
    if not ip:
        return None
    address = ipaddress.ip_address(ip.partition("%")[0])
    return str(getattr(address, "ipv4_mapped", None) or address)


def _stored(metadata: Mapping[str, Any]) -> Any:
    """The metadata as a database gives it back: texts for keys and for what JSON does not know."""
    return json.loads(_TOLERANT.encode(dict(metadata)))


def _canonical(value: Any) -> Any:
    """Numbers by value: jsonb keeps decimals, so 1e16 comes back as a whole number and -0.0 without its sign."""
    match value:
        case dict():
            return {key: _canonical(member) for key, member in value.items()}
        case list():
            return [_canonical(member) for member in value]
        case float():
            exact = Decimal(repr(value))
            return int(exact) if exact == exact.to_integral_value() else value
        case _:
            return value
