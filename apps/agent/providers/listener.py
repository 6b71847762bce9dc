"""A model heard from a thread without an event loop: what came within a moment, and the line cut at once when nobody listens any more.

Between two moments no loop runs, so that the caller may use the database.
"""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

import structlog

from apps.agent.providers.protocol import Ask, Model, Piece

log = structlog.get_logger(__name__)

# To say goodbye to a provider that does not listen either.
GOODBYE_SECONDS = 1.0


class Listener:
    """One model of one turn, with a loop of its own. Use it as a context manager."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[None] | None = None
        self._heard: list[Piece] = []
        self._news = asyncio.Event()

    def __enter__(self) -> "Listener":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.hang_up()
            self._within(GOODBYE_SECONDS, self._model.close())
            self._within(GOODBYE_SECONDS, self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    def ask(self, ask: Ask) -> None:
        """Begin a request. The one before is over."""
        self.hang_up()
        self._heard, self._task = [], self._loop.create_task(self._hear(ask))

    def listen(self, seconds: float) -> list[Piece] | None:
        """What came since the last time, as soon as something does, or nothing after so long; None: the answer is whole. Raises Failure."""
        task = self._task
        if task is None:
            return None
        self._loop.run_until_complete(self._moment(task, seconds))
        heard, self._heard = self._heard, []
        if heard or not task.done():
            return heard
        self._task = None
        task.result()
        return None

    def hang_up(self) -> None:
        """Close the provider's connection, also while it sends nothing."""
        task, self._task = self._task, None
        if task is None:
            return
        task.cancel()
        self._loop.run_until_complete(asyncio.wait({task}, timeout=GOODBYE_SECONDS))
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            log.info("model_failed_at_the_end", error=type(error).__name__)

    async def _moment(self, task: "asyncio.Task[None]", seconds: float) -> None:
        self._news.clear()
        if self._heard or task.done():
            return
        news = asyncio.ensure_future(self._news.wait())
        await asyncio.wait({task, news}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        news.cancel()

    async def _hear(self, ask: Ask) -> None:
        stream = self._model.answer(ask)
        try:
            async for piece in stream:
                self._heard.append(piece)
                self._news.set()
        finally:
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()

    def _within(self, seconds: float, work: "Coroutine[Any, Any, Any]") -> None:
        with suppress(Exception):
            self._loop.run_until_complete(asyncio.wait_for(work, seconds))
