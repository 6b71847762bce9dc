"""`/ws/agent/`: tells a signed-in person what changed in the chats that they look at, by uuids and nothing else (CH-5, section 26).

The client says `{"type": "subscribe" | "unsubscribe", "conversation"}` and `{"type": "ping"}`. Frames are answered in their order, so the
`pong` after a subscription says that nothing of the chat is missed from then on.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import UUID

from apps.agent import access, announcing, audience, events
from apps.api import live_sockets, standing
from apps.api.live_sockets import LiveSocket
from apps.api.people import Session
from apps.api.problems import Problem
from apps.api.standing import FORBIDDEN, OVER, Closed, Standing

MOST_CHATS = 20

# What a problem of the checks 1 to 3 means to a socket.
_CODES = {"unauthorized": OVER, "impersonated": FORBIDDEN, "forbidden": FORBIDDEN}


class _Member(Standing):
    """May use the assistant, as far as one query about the session tells. Chats and the person's switch are asked with each event."""

    def __init__(self, ref: object) -> None:
        super().__init__(ref, _member)


def _member(ref: object) -> Session:
    try:
        found = access.of_session(ref, standing.settings())
    except Problem as problem:
        raise Closed(_CODES[problem.code]) from None
    return Session(scope=found.scope)


def _own_chat(ref: object, conversation: str) -> UUID:
    """All checks of CH-1, now. The session's own row says whether somebody looks at the site as this person."""
    return access.own_chat(access.authorize(ref, impersonated=False), conversation).pk


class ChatEvents(LiveSocket):
    """One socket."""

    gap_seconds = 0.02

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._chats: set[UUID] = set()

    def standing_of(self, ref: object) -> Standing:
        """For all sockets of the session."""
        return standing.of(ref, _Member)

    async def heard(self, frame: Mapping[str, Any]) -> None:
        """What the client said."""
        if frame == live_sockets.PING:
            await self.say({"type": "pong"})
            return
        match frame:
            case {"type": "subscribe", "conversation": str(conversation)} if len(frame) == 2:
                await self._subscribe(conversation)
            case {"type": "unsubscribe", "conversation": str(conversation)} if len(frame) == 2:
                await self._unsubscribe(access.known(conversation))
            case _:
                await self.refuse("validation_failed")

    async def chat_event(self, event: Any) -> None:
        """From the layer."""
        with suppress(KeyError, TypeError, ValueError):
            frame = announcing.frame_of(event["frame"])
            self.note(announcing.subject(frame), frame)

    async def tell(self, session: Session, waiting: Mapping[Any, Any]) -> None:
        """What happened in chats that are theirs at this moment. Without news, whether they still are."""
        named = {UUID(frame["conversation"]) for frame in waiting.values()}
        chats = named & self._chats if waiting else set(self._chats)
        if not chats:
            return
        owners = await audience.of(chats)
        for chat in chats:
            await self._keep_or_drop(chat, owners.get(chat), session)
        for frame in waiting.values():
            if UUID(frame["conversation"]) in self._chats:
                await self.say(frame)

    async def _keep_or_drop(self, chat: UUID, owner: audience.Owner | None, session: Session) -> None:
        if owner is None or owner.person_id != session.scope.person_id:
            if await self._unsubscribe(chat):
                await self.refuse("not_found")
        elif owner.is_shut_out:
            raise Closed(FORBIDDEN)

    async def _subscribe(self, conversation: str) -> None:
        if len(self._chats) >= MOST_CHATS and access.known(conversation) not in self._chats:
            await self.refuse("too_many_items")
            return
        try:
            chat = await standing.in_thread(_own_chat, self.ref, conversation)
        except Problem as problem:
            if problem.code in _CODES:
                raise Closed(_CODES[problem.code]) from None
            await self.refuse(problem.code)
            return
        await self.listen(_group(chat))
        self._chats.add(chat)

    async def _unsubscribe(self, chat: UUID | None) -> bool:
        if chat not in self._chats or chat is None:
            return False
        self._chats.discard(chat)
        await self.ignore(_group(chat))
        return True


def _group(chat: UUID) -> str:
    return announcing.group(events.topic(chat))
