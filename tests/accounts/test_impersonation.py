"""An operator looks at the site as another person (PS-6): who may, what is recorded, and that all of it happens or nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
from django.dispatch import Signal
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from apps.accounts import impersonation, people, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason, SessionRef
from apps.activity.models import Entry
from tests.accounts.factories import make_group, make_live_session, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

VIEW = "accounts.view_user"


@pytest.fixture
def operator(client: Client) -> User:
    """May impersonate, sees people in the admin site, and is signed in."""
    operator = make_user(is_staff=True, permissions=[impersonation.PERMISSION, VIEW], name="Operator")
    client.force_login(operator)
    return operator


@pytest.fixture
def person() -> User:
    return make_user(name="Ada")


def _row(client: Client) -> LiveSession:
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _start(client: Client, person: User | str) -> HttpResponse:
    return client.post("/impersonate/", {"user_pk": getattr(person, "pk", person)})


def _who(client: Client) -> str:
    return client.get("/").json()["user"]


def test_x(client: Client, operator: User, person: User) -> None:
    answer = _start(client, person)
    assert answer.status_code == 302
    assert _who(client) == person.email
    answer = client.post("/impersonate/end/")
    assert _who(client) == operator.email, answer
    for e in Entry.objects.order_by("created_at"): print(e.action, e.actor_name, e.target, e.metadata)
    assert 0
