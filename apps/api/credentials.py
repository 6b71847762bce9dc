"""Who is at the door (KY-2): the one statement that reads everything the first steps need, and the check of a key against it."""

import hmac
import json
import traceback
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Q
from django.utils import timezone

from apps.api import key_text, libpq, people
from apps.api.models import ApiKey, Setting
from apps.api.people import Scope
from apps.api.switches import Switches

USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """What one statement found: the settings' rows as JSON text, and the row of the key that was asked for."""

    settings: str
    row: Mapping[str, Any] | None


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


def read(text: str | None) -> Facts:
    """The settings, and the row of the key, from one statement. A connection that can't answer it is replaced once."""
    wanted = key_text.public_id(text) if text is not None and key_text.well_formed(text) else None
    try:
        return _read(wanted)
    except (DatabaseError, InterfaceError):
        # Nothing ran yet: the connection may be one that the database closed while it was idle, or that forgot the statement.
        connection.close()
        return _read(wanted)


def verify(text: str, facts: Facts, *, ip: str, switches: Switches) -> VerifiedKey | None:
    """The key when it is authentic, alive, called from its networks, and its owner may act; None for every other reason alike."""
    row = facts.row or _NOBODY
    genuine = hmac.compare_digest(key_text.digest(text, row["pepper_id"]), row["digest"])
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


def reopened(key: ApiKey, switches: Switches) -> VerifiedKey | None:
    """The asking key of an approval, as of now, or the newest one of its family that still lasts (KY-4); None when none may call."""
    family = ApiKey.objects.lasting(timezone.now()).filter(family=key.family_id).order_by("-created_at", "pk")
    rows = sorted(family, key=lambda row: row.pk != key.pk)  # the key itself first, the others as they come
    owner = people.current().owner_scope(rows[0].owner_id, None, switches) if rows else None
    if owner is None:
        return None
    row = rows[0]
    return VerifiedKey(
        uuid=row.uuid,
        public_id=row.public_id,
        name=row.name,
        family=row.family_id,
        scopes=tuple(row.scopes),
        requires_approval=row.requires_approval,
        approvers_needed=row.approvers_needed,
        budget=row.budget,
        expires_at=row.expires_at,
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
    rows, row = _asked(_statement(connection.vendor, owner_sql or "NULL"), wanted)
    return Facts(settings=rows or "{}", row=_parsed(row) if row else None)


def _asked(statement: str, wanted: str | None) -> tuple[str | None, ...]:
    """A pool that gives each transaction another connection is told by Django's own switch for it: nothing is prepared there."""
    if connection.vendor == "postgresql" and not connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        return libpq.fetch_text(connection, _name(statement), statement.replace("%s", "$1"), wanted)
    with connection.cursor() as cursor:
        cursor.execute(statement, [wanted])
        return tuple(cursor.fetchone())


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
