"""`/ws/approvals/`: tells a signed-in approver which approvals changed, by their uuid and nothing else (AP-7, section 26).

A socket is accepted and then closed, so that a browser sees the code. Who it belongs to comes from the signed browser session of its
handshake alone, and is asked again while it is open. Events that come faster than they can be looked at are one.
"""

import asyncio
import json
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any
from uuid import UUID
from weakref import WeakValueDictionary

import structlog
from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from django.db import connections
from django.http import parse_cookie

from apps.api import announcing, approval_queue, deciding, people
from apps.api.people import Refused, Session

log = structlog.get_logger(__name__)

OVER, FORBIDDEN, TOO_MANY, BROKEN = 4401, 4403, 4429, 1011

# Who the session belongs to is asked at least this often, and while events flow at most once a second.
CHECK_SECONDS = 30.0
FRESH_SECONDS = 1.0
# Between two looks at what changed.
GAP_SECONDS = 0.1

MAX_FRAME = 1_024
MAX_FRAMES, FRAMES_SECONDS = 30, 10.0

_threads = ThreadPoolExecutor(4, thread_name_prefix="sockets")


async def in_thread(function: Any, *arguments: Any) -> Any:
    """Database work, in one of the few threads of the sockets, which keep no connection."""

    def work() -> Any:
        try:
            return function(*arguments)
        finally:
            connections.close_all()

    return await database_sync_to_async(work, thread_sensitive=False, executor=_threads)()


class Standing:
    """What one live session may do, for all of its sockets in this process: asked once for all of them."""

    def __init__(self, ref: object) -> None:
        self._ref, self._lock = ref, asyncio.Lock()
        self._found: Session | Refused = "session_gone"
        self._asked_at = float("-inf")
        self._is_visible: dict[UUID, bool] = {}

    async def now(self) -> Session | Refused:
        """As of this moment, or of a second ago."""
        async with self._lock:
            if time.monotonic() - self._asked_at >= FRESH_SECONDS:
                asked_at = time.monotonic()
                self._found = await in_thread(approval_queue.looker, self._ref)
                self._asked_at, self._is_visible = asked_at, {}
            return self._found

    async def visible(self, scope: people.Scope, uuids: set[UUID]) -> list[UUID]:
        """Those of them that the person may look at. Many sockets of one session ask for the same ones at the same time."""
        async with self._lock:
            unknown = uuids - self._is_visible.keys()
            if unknown:
                found = await in_thread(approval_queue.visible, scope, unknown)
                self._is_visible.update({uuid: uuid in found for uuid in unknown})
            return [uuid for uuid in uuids if self._is_visible[uuid]]


# By loop as well: a lock belongs to one.
_standings: WeakValueDictionary[Any, Standing] = WeakValueDictionary()


def _standing_of(ref: object) -> Standing:
    name = (asyncio.get_running_loop(), ref)
    found = _standings.get(name)
    if found is None:
        found = _standings[name] = Standing(ref)
    return found


@dataclass(frozen=True)
class Closed(Exception):
    """The socket may not stay open."""

    code: int


class ApprovalEvents(AsyncWebsocketConsumer):  # type: ignore[misc]  # the library has no types
    """One socket."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._changed: set[UUID] = set()
        self._news = asyncio.Event()
        self._frames: deque[float] = deque(maxlen=MAX_FRAMES)
        self._teller: asyncio.Task[None] | None = None
        self._is_closed = False

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._stop()

    async def connect(self) -> None:
        """Listen first, then look who it is: a change in between is not missed."""
        await self.accept()
        await self.channel_layer.group_add(announcing.GROUP, self.channel_name)
        try:
            ref = await in_thread(_reference, self.scope["headers"])
            if ref is None:
                raise Closed(OVER)
            standing = _standing_of(ref)
            await self._scope(standing)
        except Closed as closed:
            await self._close(closed.code)
            return
        self._teller = asyncio.create_task(self._tell_until_closed(standing))

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """A ping keeps a proxy from closing an idle socket; nothing else is said here."""
        if self._is_closed:
            return
        if self._is_too_fast():
            await self._close(TOO_MANY)
        elif not _is_ping(text_data):
            await self._say({"type": "error", "code": "validation_failed"})

    async def approval_changed(self, event: Any) -> None:
        """From the layer."""
        with suppress(KeyError, TypeError, ValueError):
            self._changed.add(UUID(event["approval"]))
            self._news.set()

    async def disconnect(self, code: int) -> None:
        """The client went away."""
        self._is_closed = True

    async def _tell_until_closed(self, standing: Standing) -> None:
        try:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), CHECK_SECONDS)
                self._news.clear()
                await self._tell(standing)
                await asyncio.sleep(GAP_SECONDS)
        except Closed as closed:
            await self._close(closed.code)
        except OSError:
            self._is_closed = True  # the client went away in the middle of a frame
        except Exception as error:
            # Nothing is told by a socket that can't ask who it belongs to: the page comes again, and looks by itself until then.
            log.warning("approval_socket_failed", exc_info=error)
            await self._close(BROKEN)

    async def _tell(self, standing: Standing) -> None:
        changed, self._changed = self._changed, set()
        scope = await self._scope(standing)
        if not changed:
            return
        for uuid in await standing.visible(scope, changed):
            await self._say({"type": "approval_changed", "approval": str(uuid)})

    async def _scope(self, standing: Standing) -> people.Scope:
        session = await standing.now()
        if not isinstance(session, Session):
            raise Closed(OVER)
        if not session.scope.can(deciding.PERMISSION):
            raise Closed(FORBIDDEN)
        return session.scope

    async def _say(self, frame: dict[str, str]) -> None:
        if not self._is_closed:
            await self.send(text_data=json.dumps(frame))

    async def _close(self, code: int) -> None:
        if not self._is_closed:
            self._is_closed = True
            with suppress(OSError):
                await self.close(code)

    async def _stop(self) -> None:
        self._is_closed = True
        with suppress(Exception):  # of a layer that is away, too
            await self.channel_layer.group_discard(announcing.GROUP, self.channel_name)
        if self._teller is not None:
            self._teller.cancel()
            with suppress(asyncio.CancelledError):
                await self._teller

    def _is_too_fast(self) -> bool:
        now = time.monotonic()
        is_full = len(self._frames) == MAX_FRAMES
        too_fast = is_full and now - self._frames[0] < FRAMES_SECONDS
        self._frames.append(now)
        return too_fast


def _reference(headers: Any) -> object | None:
    """What the browser session of a handshake stands for. The cookie is all that is read of it."""
    cookies = parse_cookie("; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie"))
    key = cookies.get(settings.SESSION_COOKIE_NAME)
    if not key:
        return None
    store = import_module(settings.SESSION_ENGINE).SessionStore(key)
    return people.current().reference_in(store)


def _is_ping(text: str | None) -> bool:
    if text is None or len(text) > MAX_FRAME:
        return False
    try:
        return bool(json.loads(text) == {"type": "ping"})
    except (ValueError, RecursionError):
        return False
