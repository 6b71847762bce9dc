"""A browser session counts while its live row does, and asking costs nothing where nobody looks."""

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts import sessions
from apps.accounts.models import LiveSession, User
from tests.accounts.factories import make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def _end() -> None:
    now = timezone.now()
    sessions.end(LiveSession.objects.all(), reason=sessions.Reason.REVOKED, by=sessions.SYSTEM, now=now)


def _move_to_somebody_else() -> None:
    LiveSession.objects.update(user=make_user())


@pytest.mark.parametrize(
    "spoil",
    [
        _end,
        _move_to_somebody_else,
        lambda: LiveSession.objects.all().delete(),
        lambda: LiveSession.objects.update(expires_at=timezone.now()),
        lambda: User.objects.update(is_active=False),
    ],
    ids=["ended", "another person's", "missing", "expired", "person blocked"],
)
def test_without_a_live_row_and_an_active_person_the_browser_is_a_visitors(
    client: Client, spoil: Callable[[], object]
) -> None:
    client.force_login(make_user())
    spoil()
    assert client.get("/").json() == {"user": "AnonymousUser", "session": None}
    assert client.get("/who-async/").json() == {"user": "AnonymousUser"}


def test_a_browser_that_was_signed_out_is_forgotten(client: Client) -> None:
    client.force_login(make_user())
    _end()
    client.get("/")
    assert sessions.CARRIED_AS not in client.session
    assert client.cookies["sessionid"].value == ""


def test_a_session_that_carries_no_row_is_a_visitors(client: Client) -> None:
    client.force_login(make_user())
    session = client.session
    del session[sessions.CARRIED_AS]
    session.save()
    assert client.get("/").json()["user"] == "AnonymousUser"


@pytest.mark.parametrize("carried", ["no uuid", "", 7, None])
def test_a_malformed_reference_is_a_visitors(client: Client, carried: object) -> None:
    client.force_login(make_user())
    session = client.session
    session[sessions.CARRIED_AS] = carried
    session.save()
    assert client.get("/").json()["user"] == "AnonymousUser"


def test_a_signed_in_person_is_there_for_both_kinds_of_views(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    assert client.get("/").json()["user"] == user.email
    assert client.get("/who-async/").json()["user"] == user.email


def test_the_row_costs_one_query_a_request(client: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    client.force_login(make_user(email_confirmed_at=timezone.now(), referral_code="A CODE"))
    with django_assert_num_queries(3):  # the browser session, the person, the row
        client.get("/")


def test_a_request_that_does_not_look_at_its_user_costs_no_query(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client.force_login(make_user())
    with django_assert_num_queries(0):
        answer = client.get("/idle/")
    assert "Cookie" not in answer.headers.get("Vary", "")


def test_a_visitor_without_a_cookie_costs_no_query_and_gets_no_session(
    client: Client, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(0):
        client.get("/")
    assert "sessionid" not in client.cookies
