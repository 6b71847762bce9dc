"""What is not yours and what is not there are one answer, byte for byte, on every route that names somebody's thing."""

import re
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
import time_machine
from django.contrib.auth.tokens import default_token_generator
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from apps.accounts import confirming
from apps.activity.models import Entry
from apps.api.models import Approval
from tests.accounts.factories import make_live_session, make_user
from tests.api import factories

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

# Parameters that name nothing of anybody's: tools and codes are the same for everybody who may see them.
NAMES_NOTHING = {
    r"api/^v1/tools/(?P<name>[^/]+)/?\Z",
    r"api/^v1/public/tools/(?P<name>[^/]+)/?\Z",
    # Of a machine: tests/api/test_approvals.py has its answers.
    r"api/^v1/approvals/(?P<uuid>[^/]+)/?\Z",
    r"^problems/(?P<code>[-a-zA-Z0-9_]+)/?$",
}


def someones_session() -> str:
    return str(make_live_session(make_user()).pk)


def someones_key() -> str:
    key, _ = factories.make_key(owner=make_user(is_superuser=True))
    return str(key.pk)


def someones_approval() -> str:
    """It waits for whoever may decide, and the person who asks here may not."""
    key, _ = factories.make_key(owner=make_user(is_superuser=True), requires_approval=True)
    now = timezone.now()
    approval = Approval.objects.create(
        family=key.family,
        key=key,
        tool="catalogue.adjust_stock",
        input_hash="0" * 64,
        arguments={},
        preview={"summary": "Something.", "rows": [], "more": 0, "totals": {}},
        fingerprint="fixed",
        created_at=now,
        expires_at=now + timedelta(hours=1),
    )
    return str(approval.pk)


def someones_reset() -> str:
    """A link that was used: the password it was made for is gone."""
    user = make_user(password="a long and quiet password")
    token = default_token_generator.make_token(user)
    user.set_password("another long and quiet password")
    user.save()
    return f"{urlsafe_base64_encode(force_bytes(user.pk))}/{token}"


def someones_address() -> str:
    """A link that was tampered with: the whole one is good for whoever has it."""
    return confirming.token(make_user())[:-1] + "_"


# The path with somebody else's thing in it, and the method that would change something.
THINGS: dict[str, tuple[Callable[[], str], Callable[[str], str], str]] = {
    "account/sessions/<str:session>/end/": (someones_session, lambda it: f"/account/sessions/{it}/end/", "post"),
    "account/keys/<str:uuid>/rotate/": (someones_key, lambda it: f"/account/keys/{it}/rotate/", "get"),
    "account/keys/<str:uuid>/revoke/": (someones_key, lambda it: f"/account/keys/{it}/revoke/", "post"),
    "approvals/<str:uuid>/": (someones_approval, lambda it: f"/approvals/{it}/", "get"),
    "approvals/<str:uuid>/decide": (someones_approval, lambda it: f"/approvals/{it}/decide", "post"),
    "password/reset/<str:uidb64>/<str:token>/": (someones_reset, lambda it: f"/password/reset/{it}/", "get"),
    "account/e-mail/<str:token>/": (someones_address, lambda it: f"/account/e-mail/{it}/", "get"),
}
UNKNOWN: dict[str, Callable[[], str]] = {
    "password/reset/<str:uidb64>/<str:token>/": lambda: "MQ/abc-def",
    "account/e-mail/<str:token>/": lambda: "nothing",
}


def routes(resolver: Any = None, before: str = "") -> Iterator[str]:
    for part in (resolver or get_resolver()).url_patterns:
        route = before + str(part.pattern)
        if isinstance(part, URLResolver):
            yield from routes(part, route)
        elif isinstance(part, URLPattern) and ("<" in route):
            yield route


def seen(answer: Any) -> tuple[int, bytes, dict[str, str]]:
    """Everything of the answer but what names the request itself."""
    headers = {name: value for name, value in answer.headers.items() if name not in ("X-Request-ID", "Set-Cookie")}
    return answer.status_code, answer.content, headers


def test_every_route_that_names_a_thing_is_looked_at() -> None:
    # Of the assistant: tests/agent/test_rest.py and tests/agent/pages/test_pages.py have its answers.
    found = {route for route in routes() if not route.startswith(("admin/", "api/agent/", "chat/"))}
    assert found == NAMES_NOTHING | set(THINGS)


@pytest.mark.parametrize("route", THINGS)
@time_machine.travel("2026-11-30T12:00:00Z", tick=False)
def test_somebody_elses_thing_and_one_that_is_not_there_are_one_answer(client: Client, route: str) -> None:
    make, path, method = THINGS[route]
    theirs = make()
    client.force_login(make_user())
    entries = Entry.objects.count()

    def asked(thing: str) -> tuple[int, bytes, dict[str, str]]:
        address = path(thing)
        status, body, headers = seen(getattr(client, method)(address))
        # A page may name its own address, as a form's action does, and its token is another one each time.
        return (
            status,
            re.sub(rb'name="csrfmiddlewaretoken" value="\w+"', b"", body).replace(address.encode(), b""),
            headers,
        )

    none = asked(UNKNOWN.get(route, lambda: str(uuid4()))())
    assert asked(theirs) == none
    assert Entry.objects.count() == entries


def admin_things() -> dict[str, str]:
    """Rows of each kind that the admin site shows, by the path of their page."""
    session = make_live_session(make_user())
    key, _ = factories.make_key()
    confirmation, record = factories.make_confirmation(), factories.make_record()
    return {
        f"/admin/accounts/user/{session.user_id}/change/": f"/admin/accounts/user/{uuid4()}/change/",
        f"/admin/accounts/livesession/{session.pk}/change/": f"/admin/accounts/livesession/{uuid4()}/change/",
        f"/admin/api/apikey/{key.pk}/change/": f"/admin/api/apikey/{uuid4()}/change/",
        f"/admin/api/apikey/{key.pk}/revoke/": f"/admin/api/apikey/{uuid4()}/revoke/",
        f"/admin/api/apikey/{key.pk}/rotate/": f"/admin/api/apikey/{uuid4()}/rotate/",
        f"/admin/api/confirmation/{confirmation.pk}/change/": f"/admin/api/confirmation/{uuid4()}/change/",
        f"/admin/api/idempotencyrecord/{record.pk}/change/": f"/admin/api/idempotencyrecord/{uuid4()}/change/",
        f"/admin/api/idempotencyrecord/{record.pk}/happened/": f"/admin/api/idempotencyrecord/{uuid4()}/happened/",
    }


@time_machine.travel("2026-11-30T12:00:00Z", tick=False)
def test_staff_without_the_right_learn_of_no_row_in_the_admin_site(client: Client) -> None:
    things = admin_things()
    client.force_login(make_user(is_staff=True))
    for theirs, none in things.items():
        assert seen(client.get(theirs)) == seen(client.get(none)), theirs
        assert seen(client.post(theirs)) == seen(client.post(none)), theirs
