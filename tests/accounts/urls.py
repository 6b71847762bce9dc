"""The account pages, the admin site, and two pages that say who is there; the gate's, since the header leads there."""

from django.contrib import admin
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, JsonResponse
from django.urls import include, path

from apps.accounts import passwords, sessions
from apps.accounts.models import User


@login_not_required
def idle(request: HttpRequest) -> JsonResponse:
    """Never looks at its user, as the API's views."""
    return JsonResponse({})


def who(request: HttpRequest) -> JsonResponse:
    ref = sessions.reference(request)
    return JsonResponse({"user": str(request.user), "session": ref and str(ref.session_uuid)})


async def who_async(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"user": str(await request.auser())})


def new_password(request: HttpRequest) -> JsonResponse:
    """A page on which a person changes their own password."""
    ref = sessions.reference(request)
    assert ref is not None
    assert isinstance(request.user, User)
    passwords.change(request.user, request.POST["new"], keep=ref.session_uuid)
    return JsonResponse({})


urlpatterns = [
    path("", who, name="home"),
    path("idle/", idle),
    path("who-async/", who_async),
    path("new-password/", new_password),
    path("admin/", admin.site.urls),
    path("", include("apps.api.urls")),
    path("", include("apps.accounts.urls")),
]
