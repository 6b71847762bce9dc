"""The door of a live session (section 17): not impersonated where more than a look is meant, and able to act at this moment."""

from django.db import transaction

from apps.activity import actions
from apps.activity import log as activity
from apps.api import audit, confirmations, credentials, handlers, people, switches
from apps.api.call import Actor, Answer, Call, OnBehalf
from apps.api.people import Session
from apps.api.problems import Problem


def refuse_impersonated(call: Call) -> None:
    """PS-6, by what the caller says: before a single query."""
    if _on(call).impersonated and _on(call).allow == "all":
        raise _impersonated()


def open_session(call: Call) -> None:
    """PS-3: the scope is rebuilt for this call. The session's own row says whether it is impersonated, whatever the caller says."""
    on = _on(call)
    call.switches = switches.parse(credentials.read(None).settings)
    found = people.current().session(on.ref, call.switches)
    if not isinstance(found, Session):
        raise Problem("unauthorized", people.REASONS[found], reason=found)
    if found.is_impersonated and on.allow == "all":
        raise _impersonated()
    call.actor = Actor(kind="user", caller=found.scope.person_id, ip=call.entrance.ip, scope=found.scope)


def reject(call: Call) -> Answer:
    """The person's no: the row theirs and waiting, one conditional update, an entry."""
    actor = call.actor
    assert actor is not None  # noqa: S101 - `open_session` came first
    with transaction.atomic(durable=True):
        row = confirmations.reject(call)
        activity.write(
            action=actions.API_CONFIRMATION_REJECTED,
            module=row.tool.partition(".")[0],
            mode=activity.Mode.MANUAL,
            actor=audit.actor_of(actor),
            resource_type="user",
            resource_uuid=actor.caller,
            target=row.tool,
            request_id=call.entrance.request_id,
            ip=call.entrance.ip or None,
            metadata={"via": _on(call).via, "tool": row.tool, "confirmation_uuid": str(row.pk)},
        )
    return handlers.answer({"status": "rejected", "confirmation_id": row.pk}, outcome="rejected")


def _on(call: Call) -> OnBehalf:
    assert call.on_behalf is not None  # noqa: S101 - only the chains of sessions come here
    return call.on_behalf


def _impersonated() -> Problem:
    return Problem("impersonated", "Somebody looks at the site as this person: they may look, not act in their name.")
