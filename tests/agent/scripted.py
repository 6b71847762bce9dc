"""A model that plays a script, put in by the setting AGENT_MODEL as a host application puts in its own.

    with scripted.playing([Text(text="Hello.")]) as script:
        ...
    assert script.asks[0].history == [Said(text="Hi")]

An answer is a list of pieces, played in order: Text, ToolCall and Usage are sent, a Failure is raised, HANG says nothing until it is
closed, and a Gate says nothing until the test opens it. An answer without a Usage ends with one of no tokens. For another process, use
an endpoint's row and one of the servers of `tests.agent.wire`.
"""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.test import override_settings

from apps.agent.providers.protocol import Ask, Chosen, Failure, Piece, Text, ToolCall, Usage

__all__ = ["HANG", "Failure", "Gate", "Hang", "Script", "Text", "ToolCall", "Usage", "choose", "playing"]

SECONDS = 30.0


class Hang:
    """Say nothing more, for ever."""


HANG: Final = Hang()


@dataclass(frozen=True)
class Gate:
    """Say nothing until the test opens it. The test waits until it is `reached`."""

    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)

    def wait(self) -> None:
        """In the test: until the model stands here."""
        assert self.reached.wait(SECONDS)

    def open(self) -> None:
        self.opened.set()


Step = Piece | Failure | Hang | Gate


class Script:
    """What was asked so far, and what is left to answer. Safe over threads; one Script may serve many turns."""

    def __init__(self, answers: Sequence[Sequence[Step]], **chosen: Any) -> None:
        self.answers = list(answers)
        self.chosen = chosen
        self.asks: list[Ask] = []
        # Whom it answered: the person of each turn that asked for a model.
        self.people: list[str] = []
        # Streams that were closed before they came to their end, and models that were let go of.
        self.cut_off = 0
        self.closed = 0
        # Set while an answer hangs, and once a stream was cut off.
        self.hangs, self.was_cut = threading.Event(), threading.Event()
        self._lock = threading.Lock()

    def choose(self, person_id: str) -> Chosen:
        with self._lock:
            self.people.append(person_id)
        return Chosen(model=ScriptedModel(self), **self.chosen)

    def next(self, ask: Ask) -> Sequence[Step]:
        with self._lock:
            self.asks.append(ask)
            assert self.answers, "The script has no more answers."
            return self.answers.pop(0)

    def note_end(self, *, is_whole: bool) -> None:
        with self._lock:
            self.cut_off += not is_whole
        if not is_whole:
            self.was_cut.set()

    def note_close(self) -> None:
        with self._lock:
            self.closed += 1


class ScriptedModel:
    """The model of one turn."""

    provider = "scripted"
    model = "scripted-1"

    def __init__(self, script: Script) -> None:
        self.script = script

    async def answer(self, ask: Ask) -> AsyncIterator[Piece]:
        """The next answer of the script."""
        steps, is_whole = self.script.next(ask), False
        try:
            for step in steps:
                async for piece in self._played(step):
                    yield piece
            if not any(isinstance(step, Usage) for step in steps):
                yield Usage()
            is_whole = True
        except Failure:
            is_whole = True
            raise
        finally:
            self.script.note_end(is_whole=is_whole)

    async def close(self) -> None:
        self.script.note_close()

    async def _played(self, step: Step) -> AsyncIterator[Piece]:
        match step:
            case Failure():
                raise step
            case Hang():
                self.script.hangs.set()
                await asyncio.Event().wait()
            case Gate():
                step.reached.set()
                while not step.opened.is_set():
                    await asyncio.sleep(0.005)  # a thread of the test opens it
            case _:
                yield step


@contextmanager
def playing(*answers: Sequence[Step], **chosen: Any) -> Iterator[Script]:
    """Every turn of this process asks this script; fields of Chosen by keyword."""
    script = Script(answers, **chosen)
    before = _stage.script
    _stage.script = script
    try:
        with override_settings(AGENT_MODEL="tests.agent.scripted.choose"):
            yield script
    finally:
        _stage.script = before


class _Stage:
    script: Script | None = None


_stage = _Stage()


def choose(person_id: str) -> Chosen:
    """What AGENT_MODEL names meanwhile."""
    if _stage.script is None:
        raise Failure("no_model", "No script is played.")
    return _stage.script.choose(person_id)
