"""What the tests of the assistant share."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.agent import events
from apps.api import credentials


@pytest.fixture
def heard() -> Iterator[list[dict[str, Any]]]:
    """The frames that listeners of any chat are told."""
    frames: list[dict[str, Any]] = []

    def hear(*, frame: dict[str, Any], **_: Any) -> None:
        frames.append(frame)

    events.changed.connect(hear)
    yield frames
    events.changed.disconnect(hear)


@pytest.fixture
def _prepared(db: None) -> None:
    """The statement that reads the settings is prepared by the first call of a connection, which is one query more."""
    credentials.read(None)
