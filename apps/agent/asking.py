"""One answer of the model, heard while somebody wants it: stored as it grows, cut off once the turn is not ours any more (TU-5, TU-6)."""

import time
from dataclasses import dataclass, field

from apps.agent import calls, limits, turn_state
from apps.agent.calls import Asked
from apps.agent.drafts import Draft
from apps.agent.limits import Reached
from apps.agent.providers.listener import Listener
from apps.agent.providers.protocol import Ask, Piece, Text, ToolCall, Usage
from apps.agent.turn_state import Attempt, Lost

# So often somebody looks whether the turn was stopped.
LOOKS_EVERY = 0.2


class Watch:
    """Whether the attempt may go on: within its time, and neither stopped nor overtaken."""

    def __init__(self, attempt: Attempt, *, seconds: int) -> None:
        self._attempt, self._seconds = attempt, seconds
        self._ends_at = time.monotonic() + seconds
        self._looked_at = 0.0

    def look(self) -> None:
        """Now. Raises Reached and Lost."""
        self._looked_at = time.monotonic()
        if self._looked_at >= self._ends_at:
            raise Reached("limit_time", self._seconds)
        if not turn_state.is_current(self._attempt):
            raise Lost

    def glance(self) -> None:
        """The same, a few times a second at most."""
        if time.monotonic() - self._looked_at >= LOOKS_EVERY:
            self.look()


@dataclass
class Heard:
    """What came so far."""

    draft: Draft
    asked: list[Asked] = field(default_factory=list)
    usage: Usage | None = None
    _chars_of_calls: int = 0

    def take(self, piece: Piece) -> None:
        """Raises Reached."""
        match piece:
            case Text():
                self.draft.add(piece.text)
            case ToolCall():
                self._add(calls.asked(piece))
            case Usage():
                self.usage = piece

    @property
    def text(self) -> str:
        """All that the model wrote, its calls too."""
        return self.draft.text + "".join(call.alias + call.arguments for call in self.asked)

    def _add(self, call: Asked) -> None:
        """Nobody stores ten thousand calls, or one without an end. Raises Reached."""
        self.asked.append(call)
        self._chars_of_calls += limits.CALL_CHARS + len(call.alias) + len(call.arguments)
        if len(self.draft.text) + self._chars_of_calls > limits.ANSWER_CHARS:
            raise Reached("limit_answer", limits.ANSWER_CHARS)


def listen(listener: Listener, ask: Ask, heard: Heard, watch: Watch) -> None:
    """Hear the answer to its end. Raises Failure, Reached and Lost; the provider's connection is closed in any case."""
    listener.ask(ask)
    try:
        while (pieces := listener.listen(LOOKS_EVERY)) is not None:
            for piece in pieces:
                heard.take(piece)
            heard.draft.save_if_due()
            watch.glance()
    finally:
        listener.hang_up()
