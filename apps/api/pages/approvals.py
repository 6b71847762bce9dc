"""`/approvals/`: what waits for a person's word, one approval with all that is needed to give it, and the form that gives it (UI-4).

With `?fragment=1` a page answers only its live parts, for the script that keeps them fresh. What a person may not see, an unknown and
a malformed uuid get the same 404.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_protect
from django.views.decorators.http import require_http_methods

from apps.api import addresses, approval_queue, deciding, doorway, people
from apps.api.approval_queue import View, Wanted
from apps.api.deciding import Decision
from apps.api.models import Approval, Vote
from apps.api.pages import approvals_rows, context
from apps.api.people import Scope, Session
from apps.api.problems import Problem

State = Approval.State

# Seconds between two looks of a page that no event came for: one may get lost, and ages change.
IDLE_SECONDS, RUNNING_SECONDS = 30, 1

REFUSED: Mapping[str, Promise] = {
    "stale_preview": _(
        "Nothing was decided: what this would change has changed since you looked. Below is the new preview. Look at it, then decide."
    ),
    "not_pending": _("Nothing was decided: this was decided, or had ended, before your word arrived."),
    "forbidden": _("Nothing was decided: who asks can't decide."),
    "validation_failed": _("Nothing was decided: a note has at most 2,000 characters."),
    "decision": _("Nothing was decided: choose to approve or to reject."),
}

Page = Callable[..., HttpResponse]


def _page(*methods: str) -> Callable[[Page], Page]:
    """For people in a live session, which the view gets, and kept by no browser."""

    def decorate(view: Page) -> Page:
        @wraps(view)
        def guarded(request: HttpRequest, **parts: str) -> HttpResponse:
            ref = people.current().reference(request)
            session = approval_queue.looker(ref)
            if isinstance(session, Session):
                return view(request, session, **parts)
            # Where the people of the host have no sessions, nobody decides.
            return _not_theirs(request) if ref is None else redirect_to_login(request.get_full_path())

        return never_cache(csrf_protect(login_required(require_http_methods([*methods])(guarded))))

    return decorate


@_page("GET", "HEAD")
def listed(request: HttpRequest, session: Session) -> HttpResponse:
    """The queue."""
    scope, now = session.scope, timezone.now()
    if not scope.can(deciding.PERMISSION):
        return _not_theirs(request)
    wanted = _wanted(request)
    found = approval_queue.page(scope, wanted, cursor=_text(request, "cursor"), now=now)
    rows = approvals_rows.rows(found.rows, now)
    runs = any(row.is_running for row in rows)
    shown = {
        "rows": rows,
        "wanted": wanted,
        "views": [(view, _address(wanted, view=view.value)) for view in View],
        "next": found.next_cursor and _address(wanted, cursor=found.next_cursor),
        "is_first": not _text(request, "cursor"),
        "is_filtered": bool(wanted.tool or wanted.key or wanted.state),
        "clear": _address(Wanted(view=wanted.view)),
        "tools": approval_queue.tools(scope),
        "states": [(state.value, state.label) for state in approval_queue.ENDED],
        "again_seconds": 3 if runs else IDLE_SECONDS,
        "approvals_badge": context.of_scope(scope),
        "now": now,
        "is_fragment": "fragment" in request.GET,
    }
    template = "api/approvals/_queue.html" if shown["is_fragment"] else "api/approvals/list.html"
    return render(request, template, shown)


@_page("GET", "HEAD")
def one(request: HttpRequest, session: Session, uuid: str) -> HttpResponse:
    """One approval."""
    approval = _visible(session.scope, uuid)
    return _not_there(request) if approval is None else _shown(request, session, approval)


@_page("GET", "HEAD", "POST")
def decide(request: HttpRequest, session: Session, uuid: str) -> HttpResponse:
    """The person's word, by POST. A refused one shows the approval as it is now, with what happened."""
    if request.method != "POST":  # whoever comes here by signing in
        return redirect("api:approval", uuid=uuid)
    approval = _visible(session.scope, uuid)
    if approval is None:
        return _not_there(request)
    decision = _decision(request)
    if decision is None:
        return _refused(request, session, approval, "decision", status=422)
    try:
        state = deciding.decide(
            people.current().reference(request),
            approval.pk,
            decision,
            impersonated=people.current().is_impersonated(request),
            request_id=doorway.request_id(request),
            ip=addresses.caller(request.META) or None,
        )
    except Problem as problem:
        return _after(problem, request, session, approval, decision)
    messages.success(request, _thanks(state))
    return redirect("api:approval", uuid=approval.pk)


def _after(
    problem: Problem, request: HttpRequest, session: Session, approval: Approval, decision: Decision
) -> HttpResponse:
    if problem.code == "unauthorized":
        return redirect_to_login(reverse("api:approval", args=[approval.pk]))
    if problem.code == "not_found":
        return _not_there(request)
    if problem.code == "conflict" and _said_so(session.scope, approval, decision):
        # The second click of two: the first one has counted.
        return redirect("api:approval", uuid=approval.pk)
    fresh = _visible(session.scope, str(approval.pk))
    reason = str(problem.context.get("reason", problem.code))
    return (
        _not_there(request) if fresh is None else _refused(request, session, fresh, reason, status=problem.kind.status)
    )


def _said_so(scope: Scope, approval: Approval, decision: Decision) -> bool:
    word = Vote.Decision.APPROVE if decision.approve else Vote.Decision.REJECT
    return approval_queue.has_said(scope, approval, word, decision.version)


def _shown(
    request: HttpRequest, session: Session, approval: Approval, *, status: int = 200, **more: Any
) -> HttpResponse:
    now = timezone.now()
    card = approvals_rows.card(approval, session, now)
    shown = {
        "card": card,
        "row": card.row,
        "approval": approval,
        "state": card.row.state.value,
        "max_note": deciding.MAX_NOTE,
        "history_days": approval_queue.HISTORY_DAYS,
        # What the page has already need not be sent again.
        "has_seen": _text(request, "seen") == str(approval.preview_version),
        "again_seconds": RUNNING_SECONDS if card.row.is_running else IDLE_SECONDS,
        "approvals_badge": context.of_scope(session.scope),
        "now": now,
        "is_fragment": "fragment" in request.GET,
        **more,
    }
    template = "api/approvals/_approval.html" if shown["is_fragment"] else "api/approvals/one.html"
    return render(request, template, shown, status=status)


def _refused(request: HttpRequest, session: Session, approval: Approval, reason: str, *, status: int) -> HttpResponse:
    text = REFUSED.get(reason) or gettext("Nothing was decided. Look at it again.")
    return _shown(request, session, approval, status=status, refused=text, note=_text(request, "note", from_form=True))


def _visible(scope: Scope, uuid: str) -> Approval | None:
    try:
        return deciding.visible(scope, UUID(uuid))
    except ValueError:
        return None


def _decision(request: HttpRequest) -> Decision | None:
    word, version = request.POST.get("decision"), request.POST.get("preview_version", "")
    if word not in ("approve", "reject") or not (version.isascii() and version.isdigit() and len(version) < 10):
        return None
    # A browser sends its line ends as two characters, and counts one.
    note = request.POST.get("note", "").replace("\r\n", "\n").strip()
    return Decision(approve=word == "approve", version=int(version), note=note)


def _wanted(request: HttpRequest) -> Wanted:
    view, state = _text(request, "view"), _text(request, "state")
    chosen = View(view) if view in View.values else View.MINE
    is_state = chosen == View.DECIDED and state in approval_queue.ENDED
    return Wanted(
        view=chosen,
        state=state if is_state else "",
        tool=_text(request, "tool")[:64],
        key=_text(request, "key").strip()[:100],
    )


def _address(wanted: Wanted, **changed: str) -> str:
    parts = {"view": wanted.view.value, "state": wanted.state, "tool": wanted.tool, "key": wanted.key, **changed}
    return "?" + urlencode({name: value for name, value in parts.items() if value})


def _text(request: HttpRequest, name: str, *, from_form: bool = False) -> str:
    return (request.POST if from_form else request.GET).get(name, "").replace("\x00", "")


def _thanks(state: Approval.State) -> str:
    match state:
        case State.REJECTED:
            return gettext("You rejected it. Nothing is run.")
        case State.PENDING:
            return gettext("You approved it. It still needs the word of somebody else.")
        case _:
            return gettext("You approved it.")


def _not_theirs(request: HttpRequest) -> HttpResponse:
    return render(request, "api/approvals/refused.html", status=403)


def _not_there(request: HttpRequest) -> HttpResponse:
    """The page of every address that leads nowhere, with DEBUG too: equal to the byte."""
    return render(request, "404.html", status=404)
