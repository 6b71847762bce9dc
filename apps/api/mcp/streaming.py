"""Progress over SSE (MC-1): a call that runs in a thread of its own to its end, whether or not its client still listens.

The answer becomes a stream with the first report, or when the tool is silent for long; a call that ends before is plain JSON, and so is
every call while as many as may run in threads do. The call's thread waits for no client: of the reports that are not sent the latest stay.
"""

import contextvars
import os
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from django.http import HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils import translation

from apps.api import lifesigns, outcomes
from apps.api.call import Call
from apps.api.mcp import progress, replies
from apps.api.mcp.progress import Step, Token
from apps.api.mcp.protocol import Fault, Message
from apps.api.problems import of_status

log = structlog.get_logger(__name__)

# So many calls of a process at most run in threads of their own: each takes a connection of the database beside the worker that sends.
MOST = 8

# So many reports wait to be sent together; a client that is shown a bar needs no more, and they are all that a slow one can hold up.
_KEPT = 8

_MEDIA_TYPE = "text/event-stream"
_KEEP_ALIVE = b": the call goes on\n\n"
_REFUSED = re.compile(r";\s*q=0(?:\.0*)?\s*(?:;|\Z)", re.IGNORECASE)

Answering = Callable[[Call, Message], HttpResponse]


def answer(answering: Answering, call: Call, message: Message) -> HttpResponseBase:
    """What `answering` answers, as a stream where the client asks for progress and there is some. Raises what it raises."""
    token = progress.token_of(message)
    if token is None or not _takes_streams(call) or not _slots.take():
        return answering(call, message)
    stream = Stream(call, message, token)
    call.listener = stream.hear
    if not _started(partial(stream.run, answering)):
        _slots.give_back()
        call.listener = None
        return answering(call, message)
    return stream.answer()


class Stream:
    """One call between its thread and the worker that sends. The condition guards what both touch."""

    def __init__(self, call: Call, message: Message, token: Token) -> None:
        self._call, self._message, self._token = call, message, token
        self._changed = threading.Condition()
        self._ended = threading.Event()
        self._last: Step | None = None
        self._unsent: deque[Step] = deque(maxlen=_KEPT)
        self._answer: HttpResponse | None = None
        self._error: BaseException | None = None

    def hear(self, reported: Any) -> None:
        """In the handler, inside its transaction: only memory is touched."""
        with self._changed:
            step = progress.step_of(reported, after=self._last)
            if step is not None:
                self._last = step
                self._unsent.append(step)
                self._changed.notify()

    def run(self, answering: Answering) -> None:
        """The call's thread. The slot is free before its client can know that it ended."""
        try:
            self._answer = answering(self._call, self._message)
        except BaseException as error:
            self._error = error
        finally:
            try:
                connections.close_all()
            finally:
                _slots.give_back()
                with self._changed:
                    self._ended.set()
                    self._changed.notify()

    def answer(self) -> HttpResponseBase:
        """The call's own answer if it ends without a report, else the stream that tells it. Raises what the call raised by then."""
        # A call that has not paid yet may end in a fault of the protocol, which is no stream; and the headers of the limiter go first.
        while not self._wait() and not self._call.levels:
            pass
        if self._ended.is_set() and not self._unsent:
            return self._result()
        return StreamingHttpResponse(
            self._events(),
            content_type=_MEDIA_TYPE,
            headers={**outcomes.charged(self._call), "Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )

    def _events(self) -> Iterator[bytes]:
        while True:
            steps, is_over = self._next()
            if steps:
                yield b"".join(_event(progress.notification(self._token, step)) for step in steps)
                self._ended.wait(lifesigns.REPORTS_EVERY)
            elif is_over:
                break
            else:
                yield _KEEP_ALIVE
        yield _event(self._last_message())

    def _next(self) -> tuple[list[Step], bool]:
        """The latest reports that are not sent, and whether the call ended."""
        self._wait()
        with self._changed:
            steps = list(self._unsent)
            self._unsent.clear()
            return steps, self._ended.is_set()

    def _wait(self) -> bool:
        """Until there is something to send. False: the tool is silent."""
        with self._changed:
            return self._changed.wait_for(lambda: self._ended.is_set() or bool(self._unsent), _silence_seconds())

    def _result(self) -> HttpResponse:
        if self._error is not None:
            raise self._error
        assert self._answer is not None  # noqa: S101 - it ended
        return self._answer

    def _last_message(self) -> bytes:
        try:
            return self._result().content
        except Fault as fault:
            return replies.fault(fault, {}).content
        except BaseException as error:
            log.error("streamed_call_failed", tool=self._call.name, exc_info=error)
            # Outside the gate, so perhaps after a committed write.
            refusal = outcomes.refusal(self._call, of_status(500, outcomes.FAILED))
            return replies.tool_result(self._message, refusal).content


def _takes_streams(call: Call) -> bool:
    """Whether the client names streams among what it accepts. Who takes anything at all gets what every client reads."""
    http = call.entrance.http
    for accepted in ("" if http is None else http.META.get("HTTP_ACCEPT", "")).split(","):
        kind, semicolon, rest = accepted.partition(";")
        if kind.strip().lower() == _MEDIA_TYPE and not _REFUSED.search(semicolon + rest):
            return True
    return False


def _started(work: Callable[[], None]) -> bool:
    """In a thread that logs and speaks as this one. False: the machine gives no thread."""
    context, language = contextvars.copy_context(), translation.get_language()

    def run() -> None:
        with translation.override(language):
            context.run(work)

    try:
        threading.Thread(target=run, name="mcp-call").start()
    except RuntimeError as error:
        log.warning("no_thread", exc_info=error)
        return False
    return True


def _event(message: bytes) -> bytes:
    """JSON has no line breaks outside of its strings, and none inside them."""
    return b"event: message\ndata: " + message + b"\n\n"


def _silence_seconds() -> float:
    """So long a stream says nothing at most: proxies give up after a minute."""
    return float(getattr(settings, "API_MCP_KEEP_ALIVE_SECONDS", 15))


class _Slots:
    """How many more calls may run in threads of their own."""

    def __init__(self) -> None:
        self.start_afresh()

    def start_afresh(self) -> None:
        """A forked worker has none of its parent's threads, one of which may have held the lock."""
        self._lock, self._free = threading.Lock(), MOST

    def take(self) -> bool:
        with self._lock:
            if not self._free:
                return False
            self._free -= 1
            return True

    def give_back(self) -> None:
        with self._lock:
            self._free += 1


_slots = _Slots()
os.register_at_fork(after_in_child=_slots.start_afresh)
