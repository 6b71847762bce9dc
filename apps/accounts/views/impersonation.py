"""Beginning and ending an impersonation: django-hijack's views in one transaction that leaves no half of it behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, login
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import resolve_url
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.views.decorators.http import require_POST
from hijack.signals import hijack_ended, hijack_started
from hijack.views import AcquireUserView, ReleaseUserView

from apps.accounts import impersonation
from apps.accounts.models import User


class _AllOrNothing:
    """Before the library's view: locks both people, and answers what came too late."""

    request: HttpRequest

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            with _undone_by_failure(request), transaction.atomic():
                _lock(request, self.other(request))
                answer: HttpResponse = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # the library's
                return answer
        except impersonation.Gone:
            return HttpResponseRedirect(resolve_url(settings.LOGIN_REDIRECT_URL))

    def other(self, request: HttpRequest) -> UUID | None:
        """Who will be there afterwards."""
        raise NotImplementedError


@method_decorator(require_POST, name="dispatch")
class Start(_AllOrNothing, AcquireUserView):  # type: ignore[misc]  # the library has no types
    """Signs the operator in as the person named in `user_pk`. Unknown and not permitted is one answer."""

    def other(self, request: HttpRequest) -> UUID | None:
        # Nobody may make another person's row wait who may not impersonate anybody.
        return _uuid(request.POST.get("user_pk", "")) if request.user.has_perm(impersonation.PERMISSION) else None

    def get_object(self, queryset: Any = None) -> User:
        person = _found(self.other(self.request))
        if person is None:
            raise Http404
        return person

    def handle_no_permission(self) -> HttpResponse:
        if not self.request.user.is_authenticated:
            return HttpResponseRedirect(reverse("sign_in"))
        raise Http404

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        operator, person = cast(User, request.user), self.get_object()
        _sign_in_as(request, person, by=operator)
        hijack_started.send(sender=None, request=request, hijacker=operator, hijacked=person)
        request.session.save()
        return HttpResponseRedirect(reverse("own_sessions"))


@method_decorator(require_POST, name="dispatch")
class End(_AllOrNothing, ReleaseUserView):  # type: ignore[misc]  # the library has no types
    """Signs the operator in again, as the row and not the browser names them."""

    def other(self, request: HttpRequest) -> UUID | None:
        operator = impersonation.impersonator(request)
        return None if operator is None else operator.pk

    def test_func(self) -> bool:
        return self.other(self.request) is not None

    def handle_no_permission(self) -> HttpResponse:
        return HttpResponseRedirect(resolve_url(settings.LOGIN_REDIRECT_URL))

    def post(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        person, operator = cast(User, request.user), _found(self.other(request))
        if operator is None:
            raise impersonation.Gone
        _sign_in_as(request, operator, by=operator)
        hijack_ended.send(sender=None, request=request, hijacker=operator, hijacked=person)
        request.session.save()
        return HttpResponseRedirect(_page_of(person, operator))


def _sign_in_as(request: HttpRequest, user: User, *, by: User) -> None:
    """Django's log-in, but `last_login` stays: it says when the person was here. Their row is locked, so nobody sees it move.

    The library takes Django's receiver away instead: from all threads, and for good when the log-in fails.
    """
    last_login, user.changed_by = user.last_login, by
    login(request, user, backend=request.session[BACKEND_SESSION_KEY])
    User.objects.filter(pk=user.pk).update(last_login=last_login)
    user.last_login = last_login


@contextmanager
def _undone_by_failure(request: HttpRequest) -> Iterator[None]:
    """The rows are as before then, and so is the browser: no half of a new session is sent to it."""
    key, user = request.session.session_key, request.user
    try:
        yield
    except BaseException:
        request.session = type(request.session)(key)
        request.user = user
        request.META.pop("CSRF_COOKIE_NEEDS_UPDATE", None)
        raise


def _lock(request: HttpRequest, other: UUID | None) -> None:
    """Both in the order of their keys: two operators who look as each other wait, and don't deadlock."""
    people = User.objects.select_for_update().filter(pk__in=[pk for pk in (request.user.pk, other) if pk])
    found = {person.pk for person in people.order_by("pk")}
    if request.user.is_authenticated and request.user.pk not in found:
        raise impersonation.Gone


def _page_of(person: User, operator: User) -> str:
    """Where the operator came from: the person's page in the admin site, if they may see it."""
    if operator.is_staff and (operator.has_perm("accounts.view_user") or operator.has_perm("accounts.change_user")):
        return reverse("admin:accounts_user_change", args=[person.pk])
    return resolve_url(settings.LOGIN_REDIRECT_URL)


def _found(pk: UUID | None) -> User | None:
    return None if pk is None else User.objects.filter(pk=pk).first()


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
