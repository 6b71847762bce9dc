"""API keys: their text, their making, and the one statement that reads everything the first steps need (KY-1 to KY-3)."""

import hashlib
import hmac
import json
import re
import secrets
import traceback
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import UUID, uuid4
from weakref import WeakKeyDictionary

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext

from apps.activity import actions
from apps.activity import log as activity
from apps.api import people
from apps.api.models import ApiKey, KeyFamily, Setting
from apps.api.people import Scope
from apps.api.switches import Switches

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
PATTERN = re.compile(r"th_(?:live|test)_[0-9A-Za-z]{12}_[0-9A-Za-z]{38}")
ID_LENGTH, SECRET_LENGTH, CHECK_LENGTH = 12, 32, 6
USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What one statement found: the settings' rows as JSON text, and the row of the key that was asked for."""

    settings: str
    row: Mapping[str, Any] | None


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


@dataclass(frozen=True, kw_only=True)
class VerifiedKey:
    """An authentic key whose owner may act. `owner` is the owner's full scope, never narrowed by the key's scopes."""

    uuid: UUID
    public_id: str
    name: str
    family: UUID
    scopes: tuple[str, ...]
    requires_approval: bool
    approvers_needed: int
    budget: int | None
    expires_at: datetime | None
    owner: Scope


def generate() -> str:
    """A new key's text: `th_<env>_<id>_<secret><check>`, 190 random bits of secret, a CRC32 in base 62 over all before it."""
    env = "test" if settings.DEBUG else "live"
    body = f"th_{env}_{_random(ID_LENGTH)}_{_random(SECRET_LENGTH)}"
    return body + check(body)


def check(body: str) -> str:
    """The CRC32 of the text before it, in six digits of base 62: a typing error is refused without looking the key up."""
    rest, digits = zlib.crc32(body.encode()), ""
    for _ in range(CHECK_LENGTH):
        rest, digit = divmod(rest, len(ALPHABET))
        digits = ALPHABET[digit] + digits
    return digits


def well_formed(text: str) -> bool:
    return PATTERN.fullmatch(text) is not None and hmac.compare_digest(
        check(text[:-CHECK_LENGTH]), text[-CHECK_LENGTH:]
    )


def public_id(text: str) -> str:
    """The id in a well-formed key's text."""
    return text.split("_")[2]


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


def read(text: str | None) -> Facts:
    """The settings, and the row of the key, from one statement. A connection that can't answer it is replaced once."""
    wanted = public_id(text) if text is not None and well_formed(text) else None
    try:
        return _read(wanted)
    except (DatabaseError, InterfaceError):
        # Nothing ran yet: the connection may be one that the database closed while it was idle, or that forgot the statement.
        connection.close()
        return _read(wanted)


def verify(text: str, facts: Facts, *, ip: str, switches: Switches) -> VerifiedKey | None:
    """The key when it is authentic, alive, called from its networks, and its owner may act; None for every other reason alike."""
    row = facts.row or _NOBODY
    genuine = hmac.compare_digest(_digest(text, row["pepper_id"]), row["digest"])
    if not genuine or row is _NOBODY or not _alive(row) or not _from_its_networks(row["networks"], ip):
        return None
    owner = people.current().owner_scope(row["owner_id"], row["owner"], switches)
    if owner is None:
        return None
    return VerifiedKey(
        uuid=row["uuid"],
        public_id=row["public_id"],
        name=row["name"],
        family=row["family_id"],
        scopes=tuple(row["scopes"]),
        requires_approval=row["requires_approval"],
        approvers_needed=row["approvers_needed"],
        budget=row["budget"],
        expires_at=row["expires_at"],
        owner=owner,
    )


def note_use(key: UUID, facts: Facts) -> None:
    """Write when the key was last used, at most once a minute, and not at all while somebody else holds the row (KY-2)."""
    now = timezone.now()
    last = facts.row["last_used_at"] if facts.row else None
    if last is not None and now - last < USE_NOTED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_NOTED_EVERY)
    try:
        with _never_waiting(), transaction.atomic():
            free = ApiKey.objects.filter(stale, pk=key).select_for_update(skip_locked=_can_skip()).order_by()
            ApiKey.objects.filter(pk__in=free.values("pk")).update(last_used_at=now)
    except DatabaseError as error:
        # A note, never a reason to refuse. The error's frames hold the cursor in a cycle: freed by the collector of another
        # thread, it waits for this connection, perhaps with the write lock that this connection waits for.
        traceback.clear_frames(error.__traceback__)


def mark_exposed(text: str, *, request_id: str, ip: str) -> None:
    """A key's text was seen where it must not be (KY-5): when its secret verifies, its page says so from now on."""
    if well_formed(text):
        _mark_exposed(text, request_id=request_id, ip=ip)


@transaction.atomic
def _mark_exposed(text: str, *, request_id: str, ip: str) -> None:
    key = ApiKey.objects.filter(public_id=public_id(text)).first()
    if key is None or not hmac.compare_digest(_digest(text, key.pepper_id), key.digest):
        return
    if ApiKey.objects.filter(pk=key.pk, exposed_at=None).update(exposed_at=timezone.now()):
        actor = activity.Actor(kind="key", uuid=str(key.pk), name=key.name)
        _entry(actions.API_KEY_EXPOSED, key, actor=actor, mode=activity.Mode.AUTO, request_id=request_id, ip=ip)


def _make(grant: Grant, *, uuid: UUID, family: KeyFamily, owner: Any, created_by: Any) -> tuple[ApiKey, str]:
    refuse_owner(owner, created_by=created_by)
    text = generate()
    pepper, digest = _digest_now(text)
    key = ApiKey(
        uuid=uuid,
        public_id=public_id(text),
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


def _random(length: int) -> str:
    return "".join(secrets.choice(ALPHABET) for _ in range(length))


def _digest_now(text: str) -> tuple[str, str]:
    pepper = next(iter(settings.API_KEY_PEPPERS))
    return pepper, _digest(text, pepper)


def _digest(text: str, pepper_id: str) -> str:
    """The keyed digest of a whole key text. A pepper that was taken away verifies nothing any more."""
    pepper = settings.API_KEY_PEPPERS.get(pepper_id) or secrets.token_hex()
    return hmac.new(pepper.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


# What an unknown key is compared with, so that it takes as long as a wrong secret.
_NOBODY: Mapping[str, Any] = {"pepper_id": "", "digest": "0" * 64}


def _alive(row: Mapping[str, Any]) -> bool:
    expires = row["expires_at"]
    return row["revoked_at"] is None and (expires is None or expires > timezone.now())


def _from_its_networks(networks: Sequence[str], ip: str) -> bool:
    """True without a list. An address that is none is in no network."""
    if not networks:
        return True
    try:
        address = ip_address(ip)
    except ValueError:
        return False
    return any(address in ip_network(network) for network in networks)


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


def _can_skip() -> bool:
    return connection.features.has_select_for_update_skip_locked


@contextmanager
def _never_waiting() -> Iterator[None]:
    """SQLite has no SKIP LOCKED: while this is open, a busy database answers at once."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    raw = connection.connection
    before = raw.execute("PRAGMA busy_timeout").fetchone()[0]
    raw.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        raw.execute(f"PRAGMA busy_timeout = {int(before)}")


_COLUMNS = (
    "uuid",
    "public_id",
    "digest",
    "pepper_id",
    "name",
    "family_id",
    "owner_id",
    "requires_approval",
    "approvers_needed",
    "budget",
    "expires_at",
    "revoked_at",
    "last_used_at",
)
_JSON_COLUMNS = ("scopes", "networks")


def _read(wanted: str | None) -> Facts:
    owner_sql = people.current().owner_sql(connection.vendor, f"k.{connection.ops.quote_name('owner_id')}")
    with connection.cursor() as cursor:
        _ask(cursor, _statement(connection.vendor, owner_sql or "NULL"), wanted)
        rows, row = cursor.fetchone()
    return Facts(settings=rows or "{}", row=_parsed(row) if row else None)


def _parsed(text: str) -> Mapping[str, Any]:
    """The row, from JSON: a driver that converts column by column takes longer than all the rest."""
    row: dict[str, Any] = json.loads(text)
    for name in ("uuid", "family_id"):
        row[name] = UUID(row[name])
    for name in ("expires_at", "revoked_at", "last_used_at"):
        row[name] = _moment(row[name])
    row["requires_approval"] = bool(row["requires_approval"])
    return row


def _moment(value: str | None) -> datetime | None:
    """SQLite keeps times in UTC without saying so."""
    if value is None:
        return None
    moment = datetime.fromisoformat(value)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


# The connections of PostgreSQL that know the statement, by its name.
_prepared: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def _ask(cursor: Any, statement: str, wanted: str | None) -> None:
    """Execute the statement, which PostgreSQL plans once a connection: planning takes five times as long as executing.

    A pool that gives each transaction another connection is told by Django's own switch for it.
    """
    if connection.vendor != "postgresql" or connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        cursor.execute(statement, [wanted])
        return
    name = _name(statement)
    if _prepared.get(connection.connection) != name:
        cursor.execute(f"PREPARE {name} (text) AS {statement.replace('%s', '$1')}")
        _prepared[connection.connection] = name
    cursor.execute(f"EXECUTE {name} (%s)", [wanted])


@lru_cache(maxsize=8)
def _name(statement: str) -> str:
    return f"tollhouse_key_{zlib.crc32(statement.encode()):08x}"


@lru_cache(maxsize=8)
def _statement(vendor: str, owner_sql: str) -> str:
    """The one hand-written statement of the gate. With the ORM's three queries, steps 1 to 4 took a third of the calls a second."""
    quote = connection.ops.quote_name
    keys, rows = quote(ApiKey._meta.db_table), quote(Setting._meta.db_table)
    if vendor == "postgresql":
        to_object, group, as_json = "json_build_object", "json_object_agg(name, value)", "{}"
    else:
        # A subquery's result is text again, and would be quoted.
        to_object, group, as_json = "json_object", "json_group_object(name, json(value))", "json({})"
    columns = [f"'{name}', k.{quote(name)}" for name in _COLUMNS]
    columns += [f"'{name}', {as_json.format(f'k.{quote(name)}')}" for name in _JSON_COLUMNS]
    row = f"{to_object}({', '.join(columns)}, 'owner', {as_json.format(owner_sql)})"
    return (
        f"SELECT (SELECT CAST({group} AS text) FROM {rows}), "  # noqa: S608 - names of our own tables
        f"(SELECT CAST({row} AS text) FROM {keys} AS k WHERE k.{quote('public_id')} = %s)"
    )
