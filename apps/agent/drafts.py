"""The assistant's message while it grows: saved a few times a second, each time with a new version and an event (TU-6)."""

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from django.db.models import F
from django.utils import timezone

from apps.agent import events, limits, turn_state, writing
from apps.agent.calls import Asked
from apps.agent.models import Message
from apps.agent.turn_state import Attempt

SAVED_EVERY = 0.25


class Draft:
    """One answer of the model. It has a row from its first text on, or from its calls."""

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self.text = ""
        self._saved = ""
        self._row: UUID | None = None
        self._due = 0.0

    @property
    def is_empty(self) -> bool:
        return not self.text.strip()

    def add(self, text: str) -> None:
        """Raises Reached when nobody should store that much."""
        self.text += writing.storable(text)
        if len(self.text) > limits.ANSWER_CHARS:
            self.text = self.text[: limits.ANSWER_CHARS]
            raise limits.Reached("limit_answer", limits.ANSWER_CHARS)

    def save_if_due(self) -> None:
        """Raises Lost."""
        if self.text != self._saved and time.monotonic() >= self._due:
            self.save(live=True)
            self._due = time.monotonic() + SAVED_EVERY

    def save(self, *, live: bool, calls: Sequence[Asked] = ()) -> None:
        """What there is so far. An answer without a word and without a call leaves no row. Raises Lost."""
        if self._row is None and self.is_empty and not calls:
            return
        values = {"content": self.text, "live": live, "tool_calls": [call.stored() for call in calls]}
        with turn_state.held(self._attempt):
            self._store(values)
        self._saved = self.text

    def _store(self, values: dict[str, Any]) -> None:
        if self._row is None:
            turn, chat = self._attempt.turn, self._attempt.conversation
            row = writing.append(chat, role=Message.Role.ASSISTANT, now=timezone.now(), turn_id=turn, **values)
            if row is None:
                raise turn_state.Lost
            self._row = row.pk
            return
        rows = Message.objects.filter(pk=self._row)
        rows.update(version=F("version") + 1, **values)
        version = rows.values_list("version", flat=True).get()
        events.message_updated(self._attempt.conversation, self._row, version=version)
