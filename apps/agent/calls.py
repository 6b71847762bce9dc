"""One tool call of a turn, from the model's words to the stored result (TU-2): whatever it is, it gets its result at once."""

import random
import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.accounts.sessions import SessionRef
from apps.agent import results, writing
from apps.agent.providers.protocol import ToolCall
from apps.agent.results import Result
from apps.api import canonical, executor, registry, strict_json
from apps.api.call import Outcome

VIA = "agent"

# What every provider takes back for an id and for a name.
_ID_LENGTH, _ID_ALPHABET = 9, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_NAME_LENGTH = 64
_ODD = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A call as it is stored: an id of our own, a name that every provider takes back, and the arguments as the model sent them."""

    id: str
    alias: str
    arguments: str

    @property
    def tool(self) -> str:
        """The name of the tool that is meant, or the alias where there is none."""
        return registry.current().canonical("admin", self.alias)

    @property
    def key(self) -> str:
        """What two equal calls have in common: by value where the arguments are an object, else as they are written."""
        found = parsed(self)
        return canonical.digest(self.alias, found if isinstance(found, dict) else {"text": self.arguments})

    def stored(self) -> dict[str, str]:
        return {"id": self.id, "name": self.alias, "arguments": self.arguments}


@dataclass(frozen=True, kw_only=True)
class Done:
    """What came of a call. `outcome` is the gate's, None where the call never reached it; `input` what was sent there."""

    result: Result
    outcome: Outcome | None = None
    input: dict[str, Any] | None = None


def asked(call: ToolCall) -> Asked:
    """The provider's own id is not kept: some send none, or the same one twice."""
    key = "".join(random.choices(_ID_ALPHABET, k=_ID_LENGTH))  # noqa: S311 - no secret, and of one chat
    alias = _ODD.sub("_", call.name)[:_NAME_LENGTH] or "unnamed"
    return Asked(id=key, alias=alias, arguments=writing.storable(call.arguments))


def parsed(call: Asked) -> dict[str, Any] | str:
    """The arguments as an object, or the sentence that says why they are none."""
    try:
        found = strict_json.loads(call.arguments.strip().encode() or b"{}")
    except strict_json.InvalidJSON as error:
        return f"The arguments are not valid JSON: {error.reason}. Nothing was called."
    except RecursionError:
        return "The arguments are nested too deeply. Nothing was called."
    return found if isinstance(found, dict) else "The arguments are not a JSON object. Nothing was called."


def made(call: Asked, ref: SessionRef, *, context: dict[str, Any], most_chars: int) -> Done:
    """Run the read or hold the write, with the rights that the session has at this moment."""
    name = call.tool
    given = parsed(call)
    if isinstance(given, str):
        return Done(result=results.fault(name, "invalid_arguments", given))
    if registry.current().find("admin", name) is None:
        return Done(result=results.fault(name, "unknown_tool", "There is no tool of this name. Nothing was called."))
    outcome = executor.execute_as(
        ref, "admin", name, given, impersonated=False, allow="all", via=VIA, request_context=context
    )
    return Done(result=results.of(name, outcome, most_chars=most_chars), outcome=outcome, input=given)


def context_of(stored: Any) -> dict[str, Any]:
    """The request's facts of the turn, as the gate takes them."""
    return dict(stored) if isinstance(stored, dict) else {}


def session(session_uuid: UUID, person: UUID) -> SessionRef:
    """For whom a turn acts: the live session that asked."""
    return SessionRef(session_uuid, person)
