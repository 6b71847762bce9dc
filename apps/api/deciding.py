"""Who decides an approval, and the one function by which they do (AP-3): a person, in a live session of their own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.activity import actions
from apps.activity import log as activity
from apps.api import approvals, credentials, people, registry, switches
from apps.api.models import ApiKey, Approval, Vote
from apps.api.people import Scope, Session
from apps.api.problems import Problem
from apps.api.switches import Switches
from apps.api.tool import Tool

PERMISSION = "api.decide_approval"
MAX_NOTE = 2_000

_NOT_ACTING = "You can't decide now: sign in again."


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A person's word. `version` is the preview that they saw."""

    approve: bool
    version: int
    note: str = ""


def decide(
    session_ref: object,
    approval_uuid: UUID,
    decision: Decision,
    *,
    impersonated: bool,
    request_id: str = "",
    ip: str | None = None,
) -> Approval.State:
    """Vote for the person of the live session; what became of the approval.

    Raises Problem: 401, 403 `impersonated` or `forbidden`, 404 for what the person may not see, 409 `conflict` with its reason.
    """
    now, session = _acting(session_ref, impersonated=impersonated)
    if len(decision.note) > MAX_NOTE or "\x00" in decision.note:
        raise Problem("validation_failed", f"A note has at most {MAX_NOTE} characters.")
    approval = visible(session.scope, approval_uuid)
    if approval is None:
        raise Problem("not_found", "There is no such approval.")
    if session.scope.person_id in askers(approval.family_id):
        raise Problem("forbidden", "Nobody decides what a key of their own asks for, or one that they made.")
    with transaction.atomic(durable=True):
        state = approvals.vote(
            approval,
            approve=decision.approve,
            voter=people.user(session.scope.person_id),
            voter_name=session.scope.name,
            note=decision.note,
            version=decision.version,
            start_hours=now.api_start_hours,
        )
        _record(approval, decision, state, by=session.scope, request_id=request_id, ip=ip)
    return state


def _record(
    approval: Approval, decision: Decision, state: Approval.State, *, by: Scope, request_id: str, ip: str | None
) -> None:
    """The vote's entry: never the note."""
    approvals.entry(
        actions.API_APPROVAL_DECIDED,
        approval,
        actor=activity.Actor(kind="user", uuid=by.person_id, name=by.name),
        request_id=request_id,
        ip=ip,
        decision="approve" if decision.approve else "reject",
        state=state.value,
        preview_version=decision.version,
    )


def _acting(session_ref: object, *, impersonated: bool) -> tuple[Switches, Session]:
    if impersonated is not False:
        raise _impersonated()
    now = switches.parse(credentials.read(None).settings)
    session = people.current().session(session_ref, now)
    if not isinstance(session, Session):
        raise Problem("unauthorized", _NOT_ACTING, reason=session)
    if session.is_impersonated:
        raise _impersonated()
    return now, session


def _impersonated() -> Problem:
    return Problem(
        "impersonated", "Somebody looks at the site as this person: they may look, not decide in their name."
    )


def visible_rows(scope: Scope) -> Any:
    """The approvals that the person may look at: those of tools whose permission they hold, if they may decide at all."""
    return Approval.objects.select_related("key", "key__owner").filter(_of_tools(scope))


def visible(scope: Scope, uuid: UUID) -> Approval | None:
    """One of them; None for any other."""
    found: Approval | None = visible_rows(scope).filter(pk=uuid).first()
    return found


def may_decide(scope: Scope, approval: Approval) -> bool:
    """Whether the person's vote counts: they hold both permissions, and the key is neither theirs nor made by them."""
    tool = registry.current().find("admin", approval.tool)
    return tool is not None and _holds(scope, tool) and scope.person_id not in askers(approval.family_id)


def askers(family: UUID) -> set[str]:
    """The owners and makers of the family's keys: "who asked" belongs to the family (KY-4). A superuser is no exception."""
    people_of = ApiKey.objects.filter(family=family).order_by("pk").values_list("owner_id", "created_by_id")
    return {str(person) for pair in people_of for person in pair if person is not None}


def counting(approval: Approval, now: Switches) -> list[Vote]:
    """The votes for the present preview whose voters may still decide (AP-4)."""
    votes: Iterable[Vote] = Vote.objects.filter(
        approval=approval, cleared_at=None, decision=Vote.Decision.APPROVE, preview_version=approval.preview_version
    ).order_by("created_at", "pk")
    return [vote for vote in votes if _still_may(vote, approval, now)]


def _still_may(vote: Vote, approval: Approval, now: Switches) -> bool:
    if vote.voter_id is None:
        return False
    scope = people.current().owner_scope(vote.voter_id, None, now)
    return scope is not None and may_decide(scope, approval)


def _of_tools(scope: Scope) -> Q:
    tools = [tool.name for tool in registry.current().of("admin") if _holds(scope, tool)]
    return Q(tool__in=tools)


def _holds(scope: Scope, tool: Tool) -> bool:
    return tool.permission is not None and scope.can(PERMISSION) and scope.can(tool.permission)
