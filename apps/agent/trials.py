"""The "test" button of an endpoint (TU-7): one tiny request in a bounded time, made by a process of its own.

The libraries of the makers are for workers (SP-5), and a web process that has imported them keeps them. A request that hangs is ended
with its process.
"""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import structlog
from django.utils import timezone

from apps.agent import endpoints, journal, prices
from apps.agent.journal import Where
from apps.agent.models import ModelEndpoint
from apps.agent.providers.connection import Connection
from apps.agent.providers.protocol import Ask, Chosen, Failure, FailureCode, Usage

log = structlog.get_logger(__name__)

# The whole of it, the start of the process included, and how long a provider may say nothing.
SECONDS, SILENCE_SECONDS = 45.0, 10.0
# At the same time in this process.
AT_ONCE = 2

_ROOT = Path(__file__).resolve().parent.parent.parent
# What a child needs of the environment. Secrets stay here.
_KEPT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT")

_places = threading.BoundedSemaphore(AT_ONCE)


class Busy(Exception):
    """Other tests run already."""


@dataclass(frozen=True, kw_only=True)
class Answered:
    """What came of it: the model's words, its tokens, what it cost where a price is known, and how long the provider took."""

    text: str
    usage: Usage
    cost: Decimal | None
    seconds: float


class _Named:
    """The model as the journal names it: the one that answers is in the child."""

    def __init__(self, row: ModelEndpoint) -> None:
        self.provider, self.model = row.provider, row.model

    def answer(self, ask: Ask) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing is open."""


def run(row: ModelEndpoint, *, person_id: str) -> Answered:
    """Ask the endpoint of this row, whether it is enabled or not, and journal it. Raises Failure or Busy."""
    if not _places.acquire(blocking=False):
        raise Busy
    try:
        return _journalled(row, person_id)
    finally:
        _places.release()


def _journalled(row: ModelEndpoint, person_id: str) -> Answered:
    began, code, usage = timezone.now(), "", None
    chosen = Chosen(model=_Named(row), endpoint_uuid=row.pk, price=prices.of_row(row))
    try:
        found = _asked(endpoints.connection(row))
        usage = Usage(**found["usage"])
    except Failure as failure:
        code = failure.code
        raise
    finally:
        call = journal.note(chosen, Where(person_id=person_id), started_at=began, usage=usage, code=code)
    return Answered(text=found["text"], usage=usage, cost=call.cost, seconds=found["seconds"])


def _asked(connection: Connection) -> Any:
    sent = {**vars(connection), "networks": [str(network) for network in connection.networks]}
    sent.update(connect_seconds=5.0, silence_seconds=SILENCE_SECONDS)
    sent.pop("explains")
    try:
        # The key goes through the pipe: arguments and environments of processes can be seen by others.
        done = subprocess.run(
            [sys.executable, "-m", "apps.agent.providers.trial"],
            input=json.dumps(sent),
            capture_output=True,
            text=True,
            timeout=SECONDS,
            cwd=_ROOT,
            env={name: os.environ[name] for name in _KEPT if name in os.environ},
            check=True,
        )
        found = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise Failure("provider_timeout", f"Nothing came within {SECONDS:.0f} seconds.") from None
    except (subprocess.CalledProcessError, ValueError) as error:
        log.error("model_trial_failed", error=type(error).__name__)
        raise Failure("provider_invalid", "The test itself failed.") from None
    if "code" in found:
        raise Failure(cast(FailureCode, found["code"]), found["detail"], retry_after=found["retry_after"])
    return found
