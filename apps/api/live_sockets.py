"""What the sockets of signed-in people have in common (CH-5, AP-7): `LiveSocket`.

A socket is accepted and then closed, so that a browser sees the code. Who it belongs to comes from the signed browser session of its
handshake alone, is asked again while it is open, and at once when something happens to the session. Events that come faster than they
can be looked at are one.
"""

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import Coroutine, Hashable, Mapping
from contextlib import ExitStack, suppress
from typing import Any, ClassVar

import structlog
from channels.consumer import get_handler_name
from channels.generic.websocket import AsyncWebsocketConsumer

from apps.api import arrival, session_news, standing
from apps.api.people import Session
from apps.api.standing import AGAIN, BROKEN, TOO_MANY, Closed, Standing

log = structlog.get_logger(__name__)

PING = {"type": "ping"}
MAX_FRAME = 1_024
MAX_FRAMES, FRAMES_SECONDS = 30, 10.0
# What waits to be told to a client that takes nothing; who has missed more comes again and catches up.
MOST_WAITING = 1_000
# When all are to come again, they do so over this time.
SPREAD_SECONDS = 3.0


class LiveSocket(AsyncWebsocketConsumer):  # type: ignore[misc]  # the library has no types
    """One socket. A subclass says who may open it, hears what its client says, and tells what waits."""

    # Between two looks at what waits.
    gap_seconds: ClassVar[float]
    # Where every socket of this kind listens.
    common_groups: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.is_closed = self._is_accepted = False
        self._waiting: dict[Hashable, Any] = {}
        self._news = asyncio.Event()
        self._frames: deque[float] = deque(maxlen=MAX_FRAMES)
        self._listens_to: set[str] = set()
        self._tasks: list[asyncio.Task[None]] = []
        self._standing: Standing | None = None
        self._place = ExitStack()

    # --- What a subclass says ---------------------------------------------------------------------------------------------

    def standing_of(self, ref: object) -> Standing:
        """What the session may do here, for all of its sockets."""
        raise NotImplementedError

    async def heard(self, frame: Mapping[str, Any]) -> None:
        """A JSON object from the client. Raises Closed."""
        raise NotImplementedError

    async def tell(self, session: Session, waiting: Mapping[Any, Any]) -> None:
        """What was noted since the last time, perhaps nothing, to a session that may hear it. Raises Closed."""
        raise NotImplementedError

    # --- What it may use --------------------------------------------------------------------------------------------------

    @property
    def ref(self) -> object:
        """The live session."""
        assert self._standing is not None, "It is open."  # noqa: S101 - by the order of things
        return self._standing.ref

    def note(self, about: Hashable, news: Any) -> None:
        """Something to tell soon. Of two about the same, the newer."""
        if len(self._waiting) <= MOST_WAITING:
            self._waiting[about] = news
        self._news.set()

    def forget(self, about: Hashable) -> None:
        """Nothing to tell any more."""
        self._waiting.pop(about, None)

    async def say(self, frame: Mapping[str, Any]) -> None:
        if not self.is_closed:
            await self.send(text_data=json.dumps(frame))

    async def refuse(self, code: str) -> None:
        """What the client said is not done; the socket stays."""
        await self.say({"type": "error", "code": code})

    async def listen(self, group: str) -> None:
        await self.channel_layer.group_add(group, self.channel_name)
        self._listens_to.add(group)

    async def ignore(self, group: str) -> None:
        self._listens_to.discard(group)
        await self.channel_layer.group_discard(group, self.channel_name)

    # --- From Channels ----------------------------------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        except Exception as error:
            # Channels asks the layer before it looks at the handshake.
            log.warning("socket_failed", exc_info=error)
            if not self._is_accepted:
                await receive()
                await send({"type": "websocket.accept"})
            if not self.is_closed:
                await send({"type": "websocket.close", "code": BROKEN})
        finally:
            await self._stop()

    async def dispatch(self, message: Any) -> None:
        """Channels' own asks a thread about old database connections before each message. Ours are those of the sockets' threads alone."""
        handler = getattr(self, get_handler_name(message), None)
        if handler is not None:
            await handler(message)

    async def connect(self) -> None:
        """Listen first, then look who it is: a change in between is not missed."""
        self._is_accepted = True
        await self.accept()
        try:
            for group in self.common_groups:
                await self.listen(group)
            ref = await standing.in_thread(arrival.reference, self.scope)
            await self.listen(session_news.group(ref))
            self._standing = self.standing_of(ref)
            session = await self._standing.now()
            self._place.enter_context(arrival.place(session.scope.person_id))
        except Exception as error:
            await self._end(error)
            return
        self._begin(self._tell_until_closed(self._standing))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if self.is_closed:
            return
        try:
            if self._is_too_fast():
                raise Closed(TOO_MANY)
            frame = _object(text_data)
            if frame is None:
                await self.refuse("validation_failed")
            else:
                await self.heard(frame)
        except Exception as error:
            await self._end(error)

    async def disconnect(self, code: int) -> None:
        """The client went away."""
        self.is_closed = True

    async def session_changed(self, event: Any) -> None:
        """From the layer: the session ended, or its person may do less."""
        if self._standing is not None:
            self._standing.forget()
            self._news.set()

    async def layer_interrupted(self, event: Any) -> None:
        """From the layer: it was away, and what was sent meanwhile is lost. Who comes again catches up."""
        self._begin(self._leave_soon())

    # --- Inside -----------------------------------------------------------------------------------------------------------

    async def _tell_until_closed(self, now: Standing) -> None:
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout(standing.CHECK_SECONDS * _spread(0.5)):
                        await self._news.wait()
                self._news.clear()
                session = await now.now()
                waiting, self._waiting = self._waiting, {}
                if len(waiting) > MOST_WAITING:
                    raise Closed(AGAIN)
                await self.tell(session, waiting)
                await asyncio.sleep(self.gap_seconds)
        except Exception as error:
            await self._end(error)

    async def _leave_soon(self) -> None:
        await asyncio.sleep(SPREAD_SECONDS * _spread(0.0))
        await self._close(AGAIN)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work))

    async def _end(self, error: Exception) -> None:
        if isinstance(error, Closed):
            await self._close(error.code)
            return
        if not isinstance(error, OSError):  # of a client that went away in the middle of a frame
            # Nothing is told by a socket that can't ask who it belongs to: the page comes again, and looks by itself until then.
            log.warning("socket_failed", exc_info=error)
        await self._close(BROKEN)

    async def _close(self, code: int) -> None:
        if not self.is_closed:
            self.is_closed = True
            with suppress(OSError):
                await self.close(code)

    async def _stop(self) -> None:
        self.is_closed = True
        self._place.close()
        for group in self._listens_to:
            with suppress(Exception):  # of a layer that is away, too
                await self.channel_layer.group_discard(group, self.channel_name)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _is_too_fast(self) -> bool:
        now = time.monotonic()
        is_full = len(self._frames) == MAX_FRAMES
        too_fast = is_full and now - self._frames[0] < FRAMES_SECONDS
        self._frames.append(now)
        return too_fast


def _spread(least: float) -> float:
    """Between that and 1: sockets that opened together are not to ask together for ever."""
    return least + (1 - least) * secrets.randbelow(1_000) / 1_000


def _object(text: str | None) -> dict[str, Any] | None:
    if text is None or len(text) > MAX_FRAME:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
