"""`/account/keys/`: a person's own keys, listed, rotated, revoked and, where the operator allows it, made.

An impersonated session sees the list and nothing else. Somebody else's key, an unknown and a malformed uuid get the same 404.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
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

from apps.api import acting, doorway, keys, own_keys
from apps.api.key_fields import GraceForm
from apps.api.models import ApiKey
from apps.api.own_keys import Reason, Refused, Standing
from apps.api.pages import own_keys_rows
from apps.api.pages.own_keys_forms import NewOwnKeyForm

A_PAGE = 50

REFUSALS: Mapping[Reason, Promise] = {
    "impersonated": _("You are looking at the site as another person. Looking is all that this allows: end it first."),
    "acts_as_role": _(
        "You are acting as one of your roles, and a key can do all that you may. Go back to all of your roles to make or rotate a "
        "key. You can revoke keys as you are."
    ),
    "may_not_act": _(
        "Your account may not act at the moment, so no key of yours works: your e-mail address is not confirmed yet, or a code is "
        "asked of you. Mend that first. You can revoke keys as you are."
    ),
    "switched_off": _(
        "Making keys of one's own is switched off here. An administrator can make one for you, and it will be listed here."
    ),
    "not_permitted": _(
        "You may not make keys of your own. An administrator can allow it, or make a key for you, and it will be listed here."
    ),
    "too_many": _(
        "As many keys that you made for yourself are in use as may be. Revoke one that nothing uses any more, then make the new one."
    ),
    "sent_twice": _(
        "This form was sent before, and made a key whose text can't be shown again. If you did not keep it, revoke that key and make "
        "a new one."
    ),
}

View = Callable[..., HttpResponse]


def _page(*methods: str) -> Callable[[View], View]:
    """For signed-in people, and kept by no browser."""

    def decorate(view: View) -> View:
        return never_cache(csrf_protect(login_required(require_http_methods([*methods])(view))))

    return decorate


@_page("GET", "HEAD")
def listed(request: HttpRequest) -> HttpResponse:
    """The person's keys, those that last first."""
    standing, now = own_keys.standing(request), timezone.now()
    found = own_keys.of(request.user).lasting_first(now).select_related("successor", "predecessor", "created_by")
    page = Paginator(found, A_PAGE).get_page(request.GET.get("page"))
    rows = [own_keys_rows.row(key, standing, now) for key in page]
    refused = standing.refusal()
    context = {
        "page": page,
        "lasting": [row for row in rows if not row.has_ended],
        "ended": [row for row in rows if row.has_ended],
        "can_make": standing.refusal_to_make() is None,
        "standing": standing,
        "refused": REFUSALS[refused] if refused else None,
        "how": REFUSALS[standing.refusal_to_make() or "switched_off"],
        "now": now,
    }
    return render(request, "api/own_keys/list.html", context)


@_page("GET", "HEAD", "POST")
def new(request: HttpRequest) -> HttpResponse:
    """The form of a new key; its answer is the page with the text."""
    standing = own_keys.standing(request)
    if reason := standing.refusal_to_make():
        return _refused(request, reason)
    form = NewOwnKeyForm(request.POST if request.method == "POST" else None, standing=standing)
    if request.method == "POST" and form.is_valid():
        return _make(request, form, standing)
    if own_keys.is_full(request.user, timezone.now()):
        return _refused(request, "too_many")
    return render(request, "api/own_keys/new.html", {"form": form, "standing": standing})


@_page("GET", "HEAD", "POST")
def rotate(request: HttpRequest, uuid: str) -> HttpResponse:
    """Asks for the grace; its answer is the page with the successor's text."""
    if reason := own_keys.standing(request).refusal():
        return _refused(request, reason)
    key = own_keys.find(request.user, uuid)
    if key is None:
        return _not_there(request)
    if not _can_be_rotated(key):
        return _back(request, _ended_meanwhile(key))
    form = GraceForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        return _rotate(request, key, form.chosen())
    return render(request, "api/own_keys/rotate.html", {"key": key, "form": form, "now": timezone.now()})


@_page("GET", "HEAD", "POST")
def revoke(request: HttpRequest, uuid: str) -> HttpResponse:
    """Asks first."""
    if own_keys.standing(request).is_impersonated:
        return _refused(request, "impersonated")
    key = own_keys.find(request.user, uuid)
    if key is None:
        return _not_there(request)
    if request.method == "POST" and keys.revoke(key, by=request.user, **acting.of(request)):
        messages.success(request, gettext("%(name)s is revoked: it opens nothing any more.") % {"name": key.name})
        return redirect("api:own_keys")
    key.refresh_from_db(fields=["revoked_at"])
    if key.revoked_at is not None:
        return _back(request, gettext("%(name)s had been revoked already.") % {"name": key.name})
    return render(request, "api/own_keys/revoke.html", {"key": key, "now": timezone.now()})


def _make(request: HttpRequest, form: NewOwnKeyForm, standing: Standing) -> HttpResponse:
    try:
        key, text = own_keys.create(request, form.grant(), once=form.cleaned_data["once"])
    except Refused as refusal:
        return _refused(request, refusal.reason)
    except ValidationError as refusal:
        form.add_error(None, refusal.messages)
        return render(request, "api/own_keys/new.html", {"form": form, "standing": standing})
    return _shown_once(request, key, text, title=gettext("Key made"))


def _rotate(request: HttpRequest, key: ApiKey, grace: timedelta) -> HttpResponse:
    try:
        successor, text = own_keys.rotate(request, key, grace=grace)
    except Refused as refusal:
        return _refused(request, refusal.reason)
    except keys.Stale:  # between the look and the lock
        key.refresh_from_db()
        return _back(request, _ended_meanwhile(key))
    key.refresh_from_db()
    return _shown_once(request, successor, text, title=gettext("Key rotated"), old=key)


def _shown_once(request: HttpRequest, key: ApiKey, text: str, **more: Any) -> HttpResponse:
    """The answer to the form itself: the text is in no redirect, session or message."""
    tools_url = doorway.base_url(request) + reverse("api:tools")
    context = {"key": key, "text": text, "tools_url": tools_url, "now": timezone.now(), **more}
    return render(request, "api/own_keys/created.html", context)


def _can_be_rotated(key: ApiKey) -> bool:
    return key.successor_id is None and not _has_ended(key)


def _has_ended(key: ApiKey) -> bool:
    return key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= timezone.now())


def _ended_meanwhile(key: ApiKey) -> str:
    if key.successor_id is not None:
        return gettext(
            "%(name)s was rotated already. The text of its successor can't be shown again: if you did not keep it, rotate the "
            "successor."
        ) % {"name": key.name}
    return gettext("%(name)s has ended: there is nothing to rotate.") % {"name": key.name}


def _back(request: HttpRequest, text: str) -> HttpResponse:
    messages.warning(request, text)
    return redirect("api:own_keys")


def _refused(request: HttpRequest, reason: Reason) -> HttpResponse:
    """What a person came too late for is a conflict; the rest is not theirs to do."""
    status = 409 if reason in ("too_many", "sent_twice") else 403
    return render(request, "api/own_keys/refused.html", {"text": REFUSALS[reason]}, status=status)


def _not_there(request: HttpRequest) -> HttpResponse:
    """The page of every address that leads nowhere, with DEBUG too: equal to the byte."""
    return render(request, "404.html", status=404)
