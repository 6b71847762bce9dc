"""The checks that stand before every function of the assistant (CH-1), in their order; the first failure is the answer.

Everything is asked anew on each call, so a log-out, a lost right or a switch takes effect on the next one.
"""

from dataclasses import dataclass
from uuid import UUID

from apps.agent import options, refusals
from apps.agent.models import AgentSetting, Conversation
from apps.agent.options import Options
from apps.agent.tools import module
from apps.api import credentials, people, switches
from apps.api.people import Scope, Session
from apps.api.switches import Switches

PERMISSION = "agent.use_assistant"


@dataclass(frozen=True, kw_only=True)
class Access:
    """A live session that may use the assistant at this moment: whose it is, and the settings that hold."""

    person: UUID
    scope: Scope
    switches: Switches
    options: Options


def authorize(ref: object, *, impersonated: bool) -> Access:
    """Checks 1 to 3. Raises Problem: `impersonated` before a single query, `unauthorized` with PS-3's reason, `forbidden`.

    `impersonated` has no default, and nothing but a bool is taken for one: who forgets it is not let in.
    """
    if not isinstance(impersonated, bool):
        raise TypeError("impersonated is True or False.")
    if impersonated:
        raise refusals.impersonated()
    access = of_session(ref, credentials.read(None).settings)
    if AgentSetting.objects.filter(user=access.person, is_enabled=False).exists():
        raise refusals.forbidden()
    return access


def of_session(ref: object, stored: str) -> Access:
    """The same with one query, by settings that were read already, and without the person's own switch: for sockets that stay open."""
    now = switches.parse(stored)
    session = people.current().session(ref, now)
    if not isinstance(session, Session):
        raise refusals.unauthorized(session)
    if session.is_impersonated:
        raise refusals.impersonated()
    access = Access(
        person=UUID(session.scope.person_id), scope=session.scope, switches=now, options=options.parse(stored)
    )
    _must_be_open(access)
    return access


def own_chat(access: Access, conversation_uuid: object) -> Conversation:
    """Check 4: the person's chat that is not deleted, else `not_found`, whatever the reason."""
    uuid = known(conversation_uuid)
    chat = None if uuid is None else Conversation.objects.of(access.person).filter(pk=uuid).first()
    if chat is None:
        raise refusals.not_found()
    return chat


def known(value: object) -> UUID | None:
    """The uuid that a value is; None for what is none, which names nothing of anybody's."""
    if not isinstance(value, str):
        return value if isinstance(value, UUID) else None
    try:
        found = UUID(value)
    except ValueError:
        return None
    return found if str(found) == value.lower() else None


def _must_be_open(access: Access) -> None:
    is_on = access.options.agent_enabled and access.switches.is_on(module)
    if not is_on or not access.scope.can(PERMISSION):
        raise refusals.forbidden()
