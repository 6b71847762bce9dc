"""Whose a chat is at the moment when something of it is told: asked for all sockets that want to know with one query."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from uuid import UUID
from weakref import WeakKeyDictionary

from django.db import connection, models

from apps.agent.models import AgentSetting, Conversation
from apps.api import standing


@dataclass(frozen=True, kw_only=True)
class Owner:
    """`is_shut_out`: the operator has switched the assistant off for them (TU-9)."""

    person_id: str
    is_shut_out: bool


Owners = Mapping[UUID, Owner]


@dataclass
class _Batch:
    wanted: set[UUID] = field(default_factory=set)
    found: asyncio.Task[Owners] | None = None


class _Desk:
    """Of one loop. Whoever asks while a question is under way is answered by the next one, which began after they asked."""

    def __init__(self) -> None:
        self._lock, self._next = asyncio.Lock(), _Batch()

    async def ask(self, chats: Iterable[UUID]) -> Owners:
        batch = self._next
        batch.wanted.update(chats)
        if batch.found is None:
            batch.found = asyncio.create_task(self._answer())
        # One that leaves takes nothing from the others.
        return await asyncio.shield(batch.found)

    async def _answer(self) -> Owners:
        async with self._lock:
            batch, self._next = self._next, _Batch()
            return await standing.in_thread(_owners, batch.wanted)


_desks: WeakKeyDictionary[asyncio.AbstractEventLoop, _Desk] = WeakKeyDictionary()


async def of(chats: Iterable[UUID]) -> Owners:
    """The owners of those that are not deleted, as of now."""
    return await _desks.setdefault(asyncio.get_running_loop(), _Desk()).ask(chats)


def _owners(chats: set[UUID]) -> Owners:
    key, wanted = Conversation._meta.pk, sorted(chats)
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_sql()} ({', '.join(['%s'] * len(wanted))})",
            [key.get_db_prep_value(chat, connection) for chat in wanted],
        )
        rows = cursor.fetchall()
    return {
        _uuid(chat): Owner(person_id=str(_uuid(person)), is_shut_out=is_enabled is not None and not is_enabled)
        for chat, person, is_enabled in rows
    }


@cache
def _sql() -> str:
    """Written once: it comes with each event, and the ORM takes longer to compile it than the database to answer it."""
    chat, person, status = (f"chat.{_column(Conversation, name)}" for name in ("uuid", "user", "status"))
    whose, is_enabled = (f"setting.{_column(AgentSetting, name)}" for name in ("user", "is_enabled"))
    return (
        f"SELECT {chat}, {person}, {is_enabled} FROM {_table(Conversation)} chat"  # noqa: S608 - names of the models only
        f" LEFT JOIN {_table(AgentSetting)} setting ON {whose} = {person}"
        f" WHERE {status} <> '{Conversation.Status.DELETED.value}' AND {chat} IN"
    )


def _uuid(value: Any) -> UUID:
    """SQLite keeps it as a text."""
    return value if isinstance(value, UUID) else UUID(value)


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)


def _column(model: type[models.Model], field: str) -> str:
    column: Any = model._meta.get_field(field)
    return connection.ops.quote_name(column.column)
