"""API keys and what becomes of them (KY-1, KY-4): made, changed, rotated, revoked, exposed; each with its entry."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext

from apps.activity import actions
from apps.activity import log as activity
from apps.api import key_text
from apps.api.models import ApiKey, KeyFamily


@dataclass(frozen=True, kw_only=True)
class Grant:
    """What a key is given. `networks` are CIDR texts, none: from everywhere; `budget` is in units a minute, None: the setting's."""

    name: str
    scopes: Sequence[str]
    requires_approval: bool = False
    approvers_needed: int = 1
    networks: Sequence[str] = ()
    budget: int | None = None
    expires_at: datetime | None = None


class Stale(Exception):
    """The key was changed or revoked after the change was decided on: nothing was written."""


@transaction.atomic
def create(
    grant: Grant,
    *,
    owner: Any,
    actor: activity.Actor,
    created_by: Any = None,
    mode: activity.Mode = activity.Mode.MANUAL,
    request_id: str = "",
    ip: str | None = None,
    uuid: UUID | None = None,
) -> tuple[ApiKey, str]:
    """A key of a family of its own, and its text, which is nowhere afterwards. Raises ValidationError for odd values.

    A caller that may be repeated (a form sent twice) names the key's uuid: the second time is an IntegrityError.
    """
    family = KeyFamily.objects.create()
    key, text = _make(grant, uuid=uuid or uuid4(), family=family, owner=owner, created_by=created_by)
    _entry(actions.API_KEY_CREATED, key, actor=actor, mode=mode, request_id=request_id, ip=ip)
    return key, text


def refuse_owner(owner: Any, *, created_by: Any) -> None:
    """Raises ValidationError when the key would give its maker the owner role: a superuser's keys are made by superusers."""
    if created_by is not None and _is_superuser(owner) and not _is_superuser(created_by):
        raise ValidationError({"owner": gettext("Only a superuser can make a key for a superuser.")})


def grant_of(key: ApiKey) -> Grant:
    """What the key is given now."""
    return Grant(**{field.name: getattr(key, field.name) for field in fields(Grant)})


def version(key: ApiKey) -> str:
    """Names the present grant of the key: a form carries it, so that `change` knows what its sender saw."""
    values = [[field.name, getattr(key, field.name)] for field in fields(Grant)]
    return hashlib.sha256(json.dumps(values, default=str).encode()).hexdigest()


@transaction.atomic
def change(
    key: ApiKey, grant: Grant, *, seen: str, actor: activity.Actor, request_id: str = "", ip: str | None = None
) -> bool:
    """Give the key this instead, from the next request on. False when it is given just that already.

    `seen` is the version that the change was made for. Raises Stale for another one and for a revoked key, ValidationError for odd values.
    """
    row = ApiKey.objects.select_for_update().get(pk=key.pk)
    if row.revoked_at is not None or version(row) != seen:
        raise Stale
    before = grant_of(row)
    names = [field.name for field in fields(Grant) if getattr(before, field.name) != getattr(grant, field.name)]
    if not names:
        return False
    for name in names:
        setattr(row, name, getattr(grant, name))
    row.full_clean()
    row.save(update_fields=names)
    changes = {name: {"old": getattr(before, name), "new": getattr(grant, name)} for name in names}
    mode = activity.Mode.MANUAL
    _entry(actions.API_KEY_CHANGED, row, actor=actor, mode=mode, request_id=request_id, ip=ip, changes=changes)
    return True


@transaction.atomic
def rotate(
    key: ApiKey, *, grace: timedelta, by: Any, actor: activity.Actor, request_id: str = "", ip: str | None = None
) -> tuple[ApiKey, str]:
    """A successor with the same grant in the same family, and its text; until the grace is over both work (KY-4).

    Raises Stale when the key has ended or was rotated already.
    """
    now = timezone.now()
    row = ApiKey.objects.select_for_update().get(pk=key.pk)
    if row.revoked_at is not None or row.successor_id is not None or (row.expires_at and row.expires_at <= now):
        raise Stale
    successor, text = _make(grant_of(row), uuid=uuid4(), family=row.family, owner=row.owner, created_by=by)
    row.successor = successor
    row.expires_at = min(row.expires_at or now + grace, now + grace)
    row.save(update_fields=["successor", "expires_at"])
    more = {"successor": successor.public_id, "grace_seconds": int(grace.total_seconds())}
    mode = activity.Mode.MANUAL
    _entry(actions.API_KEY_ROTATED, row, actor=actor, mode=mode, request_id=request_id, ip=ip, **more)
    return successor, text


@transaction.atomic
def revoke(key: ApiKey, *, by: Any, actor: activity.Actor, request_id: str = "", ip: str | None = None) -> bool:
    """End the key. False when it was revoked already: one revocation, one entry."""
    ended = ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=timezone.now(), revoked_by=by)
    if ended:
        _entry(actions.API_KEY_REVOKED, key, actor=actor, mode=activity.Mode.MANUAL, request_id=request_id, ip=ip)
    return bool(ended)


def mark_exposed(text: str, *, request_id: str, ip: str) -> None:
    """A key's text was seen where it must not be (KY-5): when its secret verifies, its page says so from now on."""
    if key_text.well_formed(text):
        _mark_exposed(text, request_id=request_id, ip=ip)


@transaction.atomic
def _mark_exposed(text: str, *, request_id: str, ip: str) -> None:
    key = ApiKey.objects.filter(public_id=key_text.public_id(text)).first()
    if key is None or not hmac.compare_digest(key_text.digest(text, key.pepper_id), key.digest):
        return
    if ApiKey.objects.filter(pk=key.pk, exposed_at=None).update(exposed_at=timezone.now()):
        actor = activity.Actor(kind="key", uuid=str(key.pk), name=key.name)
        _entry(actions.API_KEY_EXPOSED, key, actor=actor, mode=activity.Mode.AUTO, request_id=request_id, ip=ip)


def _make(grant: Grant, *, uuid: UUID, family: KeyFamily, owner: Any, created_by: Any) -> tuple[ApiKey, str]:
    refuse_owner(owner, created_by=created_by)
    text = key_text.generate()
    pepper, digest = key_text.digest_now(text)
    key = ApiKey(
        uuid=uuid,
        public_id=key_text.public_id(text),
        digest=digest,
        pepper_id=pepper,
        family=family,
        owner=owner,
        name=grant.name,
        scopes=sorted(set(grant.scopes)),
        requires_approval=grant.requires_approval,
        approvers_needed=grant.approvers_needed,
        networks=list(grant.networks),
        budget=grant.budget,
        expires_at=grant.expires_at,
        created_by=created_by,
    )
    key.full_clean(validate_unique=False)
    key.save()
    return key, text


def _is_superuser(person: Any) -> bool:
    return bool(getattr(person, "is_superuser", False))


def _entry(
    action: str,
    key: ApiKey,
    *,
    actor: activity.Actor,
    mode: activity.Mode,
    request_id: str,
    ip: str | None = None,
    **more: Any,
) -> None:
    activity.write(
        action=action,
        module="api",
        mode=mode,
        actor=actor,
        resource_type="api_key",
        resource_uuid=str(key.pk),
        target=key.name,
        request_id=request_id,
        ip=ip,
        metadata={"key": key.public_id, "scopes": key.scopes, "requires_approval": key.requires_approval, **more},
    )
