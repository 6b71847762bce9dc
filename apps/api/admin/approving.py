"""Approving and rejecting in the admin site: a button and an action, which lead to a page that shows the previews and asks for the word.

The word itself is `deciding.decide`'s, with the session of the request and the version of the preview that the page showed.
"""

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext, ngettext
from django.utils.translation import gettext_lazy as _

from apps.api import addresses, approval_queue, deciding, doorway, people
from apps.api.admin import history
from apps.api.deciding import Decision
from apps.api.models import Approval, Vote
from apps.api.pages import approvals_rows
from apps.api.pages.approvals_rows import Card
from apps.api.people import Refused, Session
from apps.api.problems import Problem

State = Approval.State

# Each is looked at: so many at a time.
AT_ONCE = 20


def session_of(request: HttpRequest) -> Session | Refused:
    """The live session of who looks."""
    return approval_queue.looker(people.current().reference(request))


class ApprovingAdmin(history.HistoryAdmin):
    """What an admin of approvals needs to decide them."""

    actions = ("decide_selected",)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Who decides sees what they may decide."""
        return super().has_view_permission(request, obj) or self.has_decide_permission(request)

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(deciding.PERMISSION)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Approval]:
        """All of them, or those that the person may look at as an approver."""
        rows: QuerySet[Approval] = super().get_queryset(request)
        if super().has_view_permission(request):
            return rows
        session = session_of(request)
        if not isinstance(session, Session):
            return rows.none()
        return rows.filter(pk__in=deciding.visible_rows(session.scope).order_by().values("pk"))

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.decide_view)
        return [path("decide/", view, name="api_approval_decide"), *super().get_urls()]

    def render_change_form(self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        can_decide = any(not card.why_not for card in self._cards(request, [str(context["original"].pk)]))
        return super().render_change_form(request, {**context, "can_decide": can_decide}, *args, **kwargs)

    @admin.action(description=_("Approve or reject"), permissions=["decide"])
    def decide_selected(self, request: HttpRequest, queryset: QuerySet[Approval]) -> HttpResponse:
        """Leads to the page that shows them."""
        chosen = list(queryset.order_by("created_at", "pk").values_list("pk", flat=True)[: AT_ONCE + 1])
        if len(chosen) > AT_ONCE:
            text = gettext("Here are the oldest %(count)d of them: each has to be looked at.")
            messages.info(request, text % {"count": AT_ONCE})
        return HttpResponseRedirect(_decide_page(chosen[:AT_ONCE]))

    def decide_view(self, request: HttpRequest) -> HttpResponse:
        """The page that asks; a POST of it decides."""
        if not self.has_decide_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._ask(request)
        if request.POST.get("decision") not in ("approve", "reject"):
            raise PermissionDenied
        seen = [_seen(text) for text in request.POST.getlist("seen")[:AT_ONCE]]
        decided = [self._decide(request, *found) for found in seen if found is not None]
        if done := decided.count(True):
            messages.success(request, _said(done, approve=request.POST["decision"] == "approve"))
        return HttpResponseRedirect(_after([found[0] for found in seen if found is not None]))

    def _ask(self, request: HttpRequest) -> HttpResponse:
        cards = self._cards(request, request.GET.getlist("approval")[:AT_ONCE])
        context = {
            **self.admin_site.each_context(request),
            "title": gettext("Approve or reject"),
            "opts": self.opts,
            "media": self.media,
            "cards": cards,
            "open": [card for card in cards if not card.why_not],
            "max_note": deciding.MAX_NOTE,
            "back": _list_page(),
        }
        return TemplateResponse(request, "admin/api/approval/decide.html", context)

    def _cards(self, request: HttpRequest, uuids: list[str]) -> list[Card]:
        """Those that wait and that the person may look at, as the approvers' page has them."""
        session = session_of(request)
        if not isinstance(session, Session) or not self.has_decide_permission(request):
            return []
        now, known = timezone.now(), [uuid for text in uuids if (uuid := _uuid(text)) is not None]
        rows = deciding.visible_rows(session.scope).filter(pk__in=known, state=State.PENDING, expires_at__gt=now)
        return [approvals_rows.card(row, session, now) for row in rows.order_by("created_at", "pk")]

    def _decide(self, request: HttpRequest, uuid: UUID, version: int) -> bool:
        """Give the word on one; a refusal becomes a message."""
        note = request.POST.get("note", "").replace("\r\n", "\n").strip()
        decision = Decision(approve=request.POST["decision"] == "approve", version=version, note=note)
        try:
            deciding.decide(
                people.current().reference(request),
                uuid,
                decision,
                impersonated=people.current().is_impersonated(request),
                request_id=doorway.request_id(request),
                ip=addresses.caller(request.META) or None,
            )
        except Problem as problem:
            if problem.code == "conflict" and _said_so(request, uuid, decision):
                return True  # the second click of two: the first one has counted
            named = Approval.objects.filter(pk=uuid).values_list("tool", flat=True).first() or str(uuid)
            messages.error(request, f"{problem.detail} ({named})")
            return False
        return True


def _said_so(request: HttpRequest, uuid: UUID, decision: Decision) -> bool:
    session = session_of(request)
    approval = deciding.visible(session.scope, uuid) if isinstance(session, Session) else None
    if approval is None or not isinstance(session, Session):
        return False
    word = Vote.Decision.APPROVE if decision.approve else Vote.Decision.REJECT
    return approval_queue.has_said(session.scope, approval, word, decision.version)


def _said(count: int, *, approve: bool) -> str:
    if approve:
        text = ngettext("You approved %(count)d write.", "You approved %(count)d writes.", count)
    else:
        text = ngettext("You rejected %(count)d write.", "You rejected %(count)d writes.", count)
    return text % {"count": count}


def _seen(text: str) -> tuple[UUID, int] | None:
    """An approval and the version of its preview, as the page wrote them."""
    name, _space, version = text.partition(" ")
    uuid = _uuid(name)
    is_number = version.isascii() and version.isdigit() and len(version) < 10
    return (uuid, int(version)) if uuid is not None and is_number else None


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None


def _after(uuids: list[UUID]) -> str:
    return reverse("admin:api_approval_change", args=uuids) if len(uuids) == 1 else _list_page()


def _decide_page(uuids: list[UUID]) -> str:
    return f"{reverse('admin:api_approval_decide')}?{urlencode([('approval', str(uuid)) for uuid in uuids])}"


def _list_page() -> str:
    return reverse("admin:api_approval_changelist")
