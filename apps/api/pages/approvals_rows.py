"""What the approver's pages say of an approval: its state and age in words, who asks, how far it is, what became of it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.functional import Promise
from django.utils.timesince import timesince
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from apps.api import approval_queue, approval_state, deciding, registry
from apps.api.approval_state import Signs
from apps.api.models import Approval, Vote
from apps.api.models.key import KeyState
from apps.api.people import Scope, Session

State = Approval.State

_MOMENT = timedelta(minutes=1)
# A result may have a mebibyte: the page shows its beginning.
MAX_SHOWN = 64_000

CODES: Mapping[str, Promise] = {
    "not_started": _("It was approved, and nobody started it in time."),
    "interrupted": _(
        "The run was interrupted before it ended. What it had changed was undone, unless it reaches outside of this system."
    ),
    "changed": _("What it would change kept changing while it waited, so it was given up."),
    "unauthorized": _("The key works no more: it is revoked or expired, or its owner may not act."),
    "forbidden": _("The key or its owner lacks a right that the tool needs by now."),
    "not_found": _("The tool is not there any more."),
    "module_disabled": _("The tool's module is switched off."),
    "validation_failed": _("The arguments don't fit the tool any more."),
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One approval of a list. `progress` is 0 to 100, None for what has none."""

    approval: Approval
    state: Approval.State
    code: str
    title: str
    owner: str
    age: str
    summary: str
    progress: int | None

    @property
    def has_ended(self) -> bool:
        return self.state not in Approval.LIVE

    @property
    def is_running(self) -> bool:
        return self.state in (State.APPROVED, State.RUNNING)


@dataclass(frozen=True, kw_only=True)
class Said:
    """One vote."""

    vote: Vote
    name: str
    is_mine: bool


@dataclass(frozen=True, kw_only=True)
class Card:
    """Everything of one approval's page. `why_not` says why this person has no buttons, "" when they have."""

    row: Row
    description: str
    key_state: KeyState
    why_not: str
    reason: str
    arguments: str | None
    partial: str | None
    result: str | None
    is_cut: bool
    votes: list[Said]
    asked_before: list[Row]
    counts: list[tuple[str, int]]
    last: list[Row]


def rows(approvals: Iterable[Approval], now: datetime) -> list[Row]:
    """With one query at most, for the signs of those that run."""
    found = list(approvals)
    signs = approval_state.signs_of(found)
    return [row(approval, now, signs) for approval in found]


def row(approval: Approval, now: datetime, signs: Signs) -> Row:
    state, code = approval_state.true_state(approval, now=now, signs=signs)
    preview = approval.preview if isinstance(approval.preview, dict) else {}
    return Row(
        approval=approval,
        state=state,
        code=code,
        title=_title(approval.tool),
        owner=name_of(approval.key.owner),
        age=_age(approval.created_at, now),
        summary=str(preview.get("summary", "")),
        progress=_percent(approval, state, signs),
    )


def card(approval: Approval, session: Session, now: datetime) -> Card:
    """The page of one approval for this person."""
    scope, signs = session.scope, approval_state.signs_of([approval])
    shown = row(approval, now, signs)
    votes = [_said(vote, scope) for vote in approval_queue.votes(approval)]
    result, is_cut = _result(approval, shown.state)
    counts, last = approval_queue.history(scope, approval, now)
    partial = approval_state.partial_of(approval, signs)
    tool = registry.current().find("admin", approval.tool)
    return Card(
        row=shown,
        description="" if tool is None else gettext(str(tool.description)),
        key_state=approval.key.state_at(now),
        why_not=_why_not(shown, session, votes),
        reason=_reason(shown, votes),
        arguments=None if approval.arguments is None else pretty(approval.arguments),
        partial=None if partial is None else pretty(partial),
        result=result,
        is_cut=is_cut,
        votes=votes,
        asked_before=rows(approval_queue.asked_before(scope, approval), now),
        counts=[(str(State(state).label), many) for state, many in counts.items()],
        last=rows(last, now),
    )


def pretty(value: Any) -> str:
    """JSON as a person reads it."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def name_of(person: Any) -> str:
    """Their name, whatever user model the host has."""
    return str(getattr(person, "get_full_name", person.get_username)() or person.get_username())


def _why_not(shown: Row, session: Session, votes: list[Said]) -> str:
    if shown.state != State.PENDING:
        return ""
    if session.is_impersonated:
        return gettext("You are looking at the site as another person: you may look, not decide in their name.")
    if not deciding.may_decide(session.scope, shown.approval):
        return gettext(
            "Who asks can't decide: the key that asks for this is yours, or you made it. Somebody else has to look at it."
        )
    if any(said.is_mine and said.vote.cleared_at is None for said in votes):
        return gettext("You have approved this. It still needs the word of somebody else.")
    return ""


def _reason(shown: Row, votes: list[Said]) -> str:
    """Why it ended without a result."""
    match shown.state:
        case State.REJECTED:
            noes = [said for said in votes if said.vote.decision == Vote.Decision.REJECT]
            return noes[-1].vote.note if noes else ""
        case State.EXPIRED:
            return gettext("Nobody decided it in time. Nothing was run.")
        case State.CANCELLED:
            return gettext("Who asked for it took it back. Nothing was run.")
        case State.FAILED:
            document = _document(shown.approval)
            detail = document.get("detail", "") if isinstance(document, dict) else ""
            return str(detail or CODES.get(shown.code, ""))
        case _:
            return ""


def _result(approval: Approval, state: Approval.State) -> tuple[str | None, bool]:
    if state != State.DONE or approval.body is None:
        return None, False
    text = pretty(_document(approval))
    return text[:MAX_SHOWN], len(text) > MAX_SHOWN


def _document(approval: Approval) -> Any:
    return None if approval.body is None else json.loads(bytes(approval.body))


def _said(vote: Vote, scope: Scope) -> Said:
    return Said(vote=vote, name=vote.voter_name, is_mine=str(vote.voter_id) == scope.person_id)


def _percent(approval: Approval, state: Approval.State, signs: Signs) -> int | None:
    if state == State.DONE:
        return 100
    share = approval_state.progress_of(approval_state.partial_of(approval, signs))
    return None if share is None else int(share * 100)


def _title(name: str) -> str:
    tool = registry.current().find("admin", name)
    return name if tool is None else gettext(str(tool.title))


def _age(at: datetime, now: datetime) -> str:
    if now - at < _MOMENT:
        return gettext("just now")
    return gettext("%(time)s ago") % {"time": timesince(at, now)}
