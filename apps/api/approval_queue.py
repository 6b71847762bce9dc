"""What the approvers see: the queue by views and filters, what waits for one of them, and what is known about who asks (UI-4).

Every row comes from `deciding.visible_rows`. What no sweep has written yet is counted as what it is by now.
"""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, Exists, OuterRef, Q, TextChoices
from django.utils.translation import gettext_lazy as _

from apps.api import approval_listing, credentials, deciding, people, registry, switches
from apps.api.models import ApiKey, Approval, Vote
from apps.api.people import Refused, Scope, Session
from apps.api.tool import Tool

State = Approval.State

A_PAGE = 25
HISTORY_DAYS = 90
_LAST = 5


class View(TextChoices):
    """The four lists."""

    MINE = "mine", _("Waiting for me")
    WAITING = "waiting", _("All waiting")
    RUNNING = "running", _("Running")
    DECIDED = "decided", _("Everything decided")


ENDED = (State.DONE, State.REJECTED, State.EXPIRED, State.CANCELLED, State.FAILED)


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A list and its filters; "" is no filter. `state` is for what is decided; `key` is a public id, or a part of the name."""

    view: View = View.MINE
    state: str = ""
    tool: str = ""
    key: str = ""


@dataclass(frozen=True, kw_only=True)
class Page:
    """`next_cursor` is None on the last one."""

    rows: list[Approval]
    next_cursor: str | None


def looker(ref: object) -> Session | Refused:
    """Who looks: the live session with its scope as of now, or why it may not."""
    return people.current().session(ref, switches.parse(credentials.read(None).settings))


def page(scope: Scope, wanted: Wanted, *, cursor: str, now: datetime) -> Page:
    """What waits comes with the oldest first, all else with the newest first. A cursor that is none begins at the start."""
    rows = _filtered(scope, wanted, now)
    ahead = wanted.view in (View.MINE, View.WAITING)
    with suppress(ValueError):
        created, uuid = approval_listing.position(cursor)
        later = Q(created_at__gt=created) if ahead else Q(created_at__lt=created)
        beside = Q(created_at=created) & (Q(pk__lt=uuid) if ahead else Q(pk__gt=uuid))
        rows = rows.filter(later | beside)
    order = ("created_at", "-pk") if ahead else ("-created_at", "pk")
    found = list(rows.order_by(*order)[: A_PAGE + 1])
    more = len(found) > A_PAGE
    return Page(rows=found[:A_PAGE], next_cursor=approval_listing.cursor_of(found[A_PAGE - 1]) if more else None)


def tools(scope: Scope) -> list[Tool]:
    """The writes that the person may decide, for the filter."""
    return [
        tool
        for tool in registry.current().of("admin")
        if tool.is_write and tool.permission is not None and scope.can(tool.permission)
    ]


def waiting_for(person_id: Any, now: datetime) -> Q:
    """What waits for this person's word: not of a key that is theirs or made by them, and not voted on by them."""
    theirs = ApiKey.objects.filter(Q(owner=person_id) | Q(created_by=person_id), family=OuterRef("family"))
    said = Vote.objects.filter(approval=OuterRef("pk"), voter=person_id, cleared_at=None)
    return Q(state=State.PENDING, expires_at__gt=now) & ~Exists(theirs) & ~Exists(said)


def count_waiting(scope: Scope, now: datetime) -> int:
    """How many wait for the person."""
    found: int = deciding.visible_rows(scope).filter(waiting_for(scope.person_id, now)).count()
    return found


def visible(scope: Scope, uuids: Collection[UUID]) -> set[UUID]:
    """Those of these approvals that the person may look at."""
    return set(deciding.visible_rows(scope).filter(pk__in=uuids).order_by("pk").values_list("pk", flat=True))


def votes(approval: Approval) -> list[Vote]:
    """All of them, in their order, with those that no longer count."""
    return list(Vote.objects.filter(approval=approval).select_related("voter").order_by("created_at", "pk"))


def asked_before(scope: Scope, approval: Approval) -> list[Approval]:
    """The last times that the same was asked: the same key family, tool and arguments."""
    same = deciding.visible_rows(scope).filter(
        family=approval.family_id,
        tool=approval.tool,
        input_hash=approval.input_hash,
        created_at__lt=approval.created_at,
    )
    return list(same.order_by("-created_at", "pk")[:_LAST])


def history(scope: Scope, approval: Approval, now: datetime) -> tuple[Mapping[State, int], list[Approval]]:
    """What became of what the key asked for lately: how many of each end, and the last five."""
    since = now - timedelta(days=HISTORY_DAYS)
    ended = deciding.visible_rows(scope).filter(
        family=approval.family_id, created_at__gt=since, state__in=ENDED, ended_at__isnull=False
    )
    ended = ended.exclude(pk=approval.pk)
    counts = dict(ended.order_by("state").values_list("state").annotate(Count("pk")))
    last = list(ended.order_by("-created_at", "pk")[:_LAST])
    return {state: counts[state] for state in ENDED if state in counts}, last


def has_said(scope: Scope, approval: Approval, decision: Vote.Decision, version: int) -> bool:
    """Whether the person gave this word on this preview already."""
    voter: Any = scope.person_id
    said = Vote.objects.filter(approval=approval, voter=voter, decision=decision, cleared_at=None)
    return said.filter(preview_version=version).exists()


def _filtered(scope: Scope, wanted: Wanted, now: datetime) -> Any:
    rows = deciding.visible_rows(scope).filter(_of_view(scope, wanted, now))
    if wanted.tool:
        rows = rows.filter(tool=wanted.tool)
    if wanted.key:
        rows = rows.filter(Q(key__public_id=wanted.key) | Q(key__name__icontains=wanted.key))
    return rows


def _of_view(scope: Scope, wanted: Wanted, now: datetime) -> Q:
    overdue, unstarted = _overdue(now), _unstarted(now)
    match wanted.view:
        case View.MINE:
            return waiting_for(scope.person_id, now)
        case View.WAITING:
            return Q(state=State.PENDING) & ~overdue
        case View.RUNNING:
            return Q(state__in=[State.APPROVED, State.RUNNING]) & ~unstarted
        case View.DECIDED:
            ended = {
                State.EXPIRED: Q(state=State.EXPIRED) | overdue,
                State.FAILED: Q(state=State.FAILED) | unstarted,
            }
            if wanted.state in ENDED:
                return ended.get(State(wanted.state), Q(state=wanted.state))
            return Q(state__in=ENDED) | overdue | unstarted


def _overdue(now: datetime) -> Q:
    return Q(state=State.PENDING, expires_at__lte=now)


def _unstarted(now: datetime) -> Q:
    return Q(state=State.APPROVED, start_before__isnull=False, start_before__lte=now)
