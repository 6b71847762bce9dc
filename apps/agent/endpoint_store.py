"""Changing the endpoints of models, each change with its entry (AC-1): what the admin site calls. A key is named in it, never shown."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.activity import actions
from apps.activity import log as activity
from apps.agent import endpoint_keys
from apps.agent.models import ModelEndpoint

# What an entry tells of a row.
FIELDS = (
    "name", "provider", "base_url", "model", "is_default", "is_enabled", "context_chars", "max_output_tokens",
    "input_price", "output_price", "cache_read_price", "cache_write_price",
)  # fmt: skip


def create(row: ModelEndpoint, *, key: str, actor: activity.Actor, request_id: str = "", ip: str | None = None) -> None:
    """Store a new row. Raises IntegrityError where another one became the default, or took the name, at the same time."""
    with transaction.atomic():
        _lock()
        _be_default(row)
        endpoint_keys.put(row, key)
        row.save(force_insert=True)
        values = {name: _plain(getattr(row, name)) for name in FIELDS} | {"has_key": bool(key)}
        _write(actions.AGENT_ENDPOINT_CREATED, row, values, actor=actor, request_id=request_id, ip=ip)


def change(
    row: ModelEndpoint,
    changed: Iterable[str],
    *,
    key: str | None,
    actor: activity.Actor,
    request_id: str = "",
    ip: str | None = None,
) -> bool:
    """Write the changed fields of the row; False where it is gone. `key`: a new one, an empty text that takes it away, or None."""
    names = [name for name in FIELDS if name in set(changed)]
    with transaction.atomic():
        before = _lock().get(row.pk)
        if before is None:
            return False
        changes: dict[str, Any] = {
            name: {"old": _plain(getattr(before, name)), "new": _plain(getattr(row, name))} for name in names
        }
        if "is_default" in names:
            _be_default(row)
        if key is not None:
            endpoint_keys.put(row, key)
            names.append("key_encrypted")
            changes["key"] = "set" if key else "removed"
        if changes:
            row.save(update_fields=[*names, "updated_at"])
            _write(actions.AGENT_ENDPOINT_CHANGED, row, {"changes": changes}, actor=actor, request_id=request_id, ip=ip)
    return True


def delete(row: ModelEndpoint, *, actor: activity.Actor, request_id: str = "", ip: str | None = None) -> None:
    """Its calls stay in the journal."""
    with transaction.atomic():
        _write(actions.AGENT_ENDPOINT_DELETED, row, {"model": row.model}, actor=actor, request_id=request_id, ip=ip)
        row.delete()


def note_trial(
    row: ModelEndpoint, *, code: str, actor: activity.Actor, request_id: str = "", ip: str | None = None
) -> None:
    """Somebody pressed "test"; `code` is empty when it answered."""
    metadata = {"outcome": "answered" if not code else "failed", "code": code}
    _write(actions.AGENT_ENDPOINT_TESTED, row, metadata, actor=actor, request_id=request_id, ip=ip)


def _lock() -> dict[UUID, ModelEndpoint]:
    """All of them, in one order: who changes the default changes two."""
    return {row.pk: row for row in ModelEndpoint.objects.select_for_update().order_by("pk")}


def _be_default(row: ModelEndpoint) -> None:
    if row.is_default:
        ModelEndpoint.objects.filter(is_default=True).exclude(pk=row.pk).update(is_default=False)


def _plain(value: Any) -> Any:
    return str(value.normalize()) if isinstance(value, Decimal) else value


def _write(
    action: str,
    row: ModelEndpoint,
    metadata: Mapping[str, Any],
    *,
    actor: activity.Actor,
    request_id: str,
    ip: str | None,
) -> None:
    activity.write(
        action=action,
        module="agent",
        mode=activity.Mode.MANUAL,
        actor=actor,
        resource_type="model_endpoint",
        resource_uuid=str(row.pk),
        target=row.name,
        request_id=request_id,
        ip=ip,
        metadata=metadata,
    )
