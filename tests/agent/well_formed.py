"""What a strict provider would refuse of a history (TU-2)."""

from collections.abc import Iterator, Sequence

from apps.agent.providers.protocol import Line, Proposed, Resulted, Said


def faults(lines: Sequence[Line]) -> list[str]:
    """Each with the position of its line; an empty list for a history that every provider takes."""
    return [*_order(lines), *_calls(lines)]


def _order(lines: Sequence[Line]) -> Iterator[str]:
    for index, line in enumerate(lines):
        before = lines[index - 1] if index else None
        if not index and not isinstance(line, Said):
            yield "does not begin with a person's text"
        if isinstance(line, Said) and (isinstance(before, Said) or not line.text):
            yield f"{index}: two texts of the person in a row, or an empty one"
        if isinstance(line, Proposed) and (isinstance(before, Proposed) or not (line.text or line.calls)):
            yield f"{index}: two answers in a row, or an empty one"
    if lines and isinstance(lines[-1], Proposed):
        yield "ends with an answer"


def _calls(lines: Sequence[Line]) -> Iterator[str]:
    ids: list[str] = []
    waiting: list[str] = []
    for index, line in enumerate(lines):
        if isinstance(line, Resulted):
            if not waiting or waiting.pop(0) != line.call_id or not line.text:
                yield f"{index}: a result of another call, or an empty one"
            continue
        if waiting:
            yield f"{index}: a call without a result"
        waiting = [call.id for call in line.calls] if isinstance(line, Proposed) else []
        ids += waiting
    if waiting:
        yield "ends without a result"
    if len(set(ids)) < len(ids):
        yield "an id of a call twice"
