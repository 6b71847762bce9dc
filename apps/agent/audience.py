"""Whose a chat is at the moment when something of it is told: asked for all sockets that want to know with one query."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from uuid import UUID
from weakref import WeakKeyDictionary

from apps.agent.models import Conversation
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
    rows = Conversation.objects.filter(pk__in=chats).exclude(status=Conversation.Status.DELETED).order_by("pk")
    found = rows.values_list("pk", "user_id", "user__agent_setting__is_enabled")
    return {pk: Owner(person_id=str(person), is_shut_out=is_enabled is False) for pk, person, is_enabled in found}
