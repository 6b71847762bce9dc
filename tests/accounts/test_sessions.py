"""A row for each signed-in browser: made, ended once, recorded (PS-2)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from uuid import UUID, uuid4

import pytest
import time_machine
from django.contrib.auth import login
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.test import Client, RequestFactory
from django.utils import timezone

from apps.accounts import sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import LIFETIME, Reason, SessionRef
from apps.activity.models import Entry
from tests.accounts.factories import PASSWORD, make_expired_session, make_live_session, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


def _row(client: Client) -> LiveSession:
    """The row that the client's signed session carries."""
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action).order_by("pk"))


def test_signing_in_makes_a_row_with_a_fortnight_to_live(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    row = _row(client)
    assert (row.user, row.ended_at, row.expires_at - row.created_at) == (user, None, timedelta(days=14))


def test_signing_in_is_recorded_with_the_person_and_the_session(client: Client) -> None:
    user = make_user(name="Somebody")
    client.force_login(user)
    (entry,) = _entries("session.started")
    assert (entry.actor_kind, entry.actor_uuid, entry.actor_name) == ("user", str(user.pk), "Somebody")
    assert (entry.mode, entry.resource_type, entry.resource_uuid) == ("manual", "session", str(_row(client).pk))


def test_signing_out_ends_the_row_and_says_so(client: Client) -> None:
    client.force_login(make_user())
    row = _row(client)
    client.post("/sign-out/")
    row.refresh_from_db()
    (entry,) = _entries("session.ended")
    assert (row.end_reason, row.ended_at is not None) == (Reason.SIGNED_OUT, True)
    assert (entry.resource_uuid, entry.metadata["reason"]) == (str(row.pk), "signed_out")


def test_signing_out_twice_ends_nothing_more(client: Client) -> None:
    client.force_login(make_user())
    client.post("/sign-out/")
    assert client.post("/sign-out/").status_code == 302
    assert len(_entries("session.ended")) == 1


def test_signing_in_anew_in_the_same_browser_leaves_one_open_row(client: Client) -> None:
    user = make_user()
    client.force_login(user)
    client.force_login(user)
    assert [row.pk for row in LiveSession.objects.filter(ended_at=None)] == [_row(client).pk]


def test_signing_in_ends_the_expired_ones_of_the_person_only(client: Client) -> None:
    user = make_user()
    mine, other = make_expired_session(user), make_expired_session(make_user())
    client.force_login(user)
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.end_reason, other.end_reason) == (Reason.EXPIRED, "")


def test_the_browser_and_the_address_are_kept_within_bounds(client: Client) -> None:
    client.get("/sign-in/")
    user = make_user(password="a long and quiet password")
    data = {"username": user.email, "password": "a long and quiet password"}
    client.post("/sign-in/", data, HTTP_USER_AGENT="x\x00y" * 400, REMOTE_ADDR="::ffff:192.0.2.9")
    row = _row(client)
    assert (row.user_agent[:4], len(row.user_agent), row.ip) == ("xyxy", 300, "192.0.2.9")


def test_a_second_end_of_a_session_finds_nothing() -> None:
    user = make_user()
    rows = LiveSession.objects.filter(pk=make_live_session(user).pk)
    by, now = sessions.actor(user), timezone.now()
    assert sessions.end(rows, reason=Reason.REVOKED, by=by, now=now) == 1
    assert sessions.end(rows, reason=Reason.BLOCKED, by=by, now=now) == 0
    assert rows.get().end_reason == Reason.REVOKED


def test_end_others_keeps_one_and_leaves_other_people_alone() -> None:
    user = make_user()
    kept, _, stranger = make_live_session(user), make_live_session(user), make_live_session(make_user())
    ended = sessions.end_others(
        user, keep=kept.pk, reason=Reason.PASSWORD_CHANGED, by=sessions.actor(user), now=timezone.now()
    )
    assert ended == 1
    assert set(LiveSession.objects.filter(ended_at=None)) == {kept, stranger}


def test_end_all_keeps_none() -> None:
    user = make_user()
    make_live_session(user)
    make_live_session(user)
    assert sessions.end_all(user, reason=Reason.BLOCKED, by=sessions.SYSTEM, now=timezone.now()) == 2
    assert len(_entries("session.ended")) == 2


def test_expiry_is_recorded_as_nobodys_act() -> None:
    user = make_user()
    make_expired_session(user)
    make_live_session(user)
    assert sessions.expire(LiveSession.objects.all(), now=timezone.now()) == 1
    (entry,) = _entries("session.ended")
    assert (entry.actor_kind, entry.mode, entry.metadata["reason"]) == ("system", "cron", "expired")


def _ended(row: LiveSession) -> LiveSession:
    sessions.end(LiveSession.objects.all(), reason=Reason.REVOKED, by=sessions.SYSTEM, now=timezone.now())
    return row


@pytest.mark.parametrize(
    ("make", "live"),
    [
        (make_live_session, True),
        (lambda user: _ended(make_live_session(user)), False),
        (make_expired_session, False),
    ],
)
def test_a_session_is_live_while_open_and_within_its_time(make: Callable[[User], LiveSession], live: bool) -> None:
    user = make_user()
    assert (sessions.live(SessionRef(make(user).pk, user.pk), now=timezone.now()) is not None) is live


def test_a_session_of_somebody_else_and_one_that_never_was_are_not_live() -> None:
    row = make_live_session(make_user())
    assert not sessions.live(SessionRef(row.pk, make_user().pk), now=timezone.now())
    assert not sessions.live(SessionRef(uuid4(), row.user_id), now=timezone.now())


def test_a_session_is_over_at_the_instant_that_it_names() -> None:
    row = make_live_session(make_user())
    ref = SessionRef(row.pk, row.user_id)
    assert sessions.live(ref, now=row.expires_at - timedelta(microseconds=1))
    assert not sessions.live(ref, now=row.expires_at)


def test_the_reference_is_what_the_signed_session_carries(client: Client) -> None:
    client.force_login(make_user())
    found = client.get("/", {"live_session": str(uuid4())}, HTTP_X_LIVE_SESSION=str(uuid4())).json()
    assert UUID(found["session"]) == _row(client).pk


def test_a_visitor_has_no_reference(client: Client) -> None:
    assert client.get("/").json() == {"user": "AnonymousUser", "session": None}


def test_a_session_that_is_over_by_time_signs_its_browser_out(client: Client) -> None:
    client.force_login(make_user())
    row = _row(client)
    with time_machine.travel(timezone.now() + LIFETIME - timedelta(seconds=5)):
        assert client.get("/").json()["session"] == str(row.pk)
    LiveSession.objects.update(expires_at=timezone.now())
    assert client.get("/").json()["session"] is None
    row.refresh_from_db()
    assert row.end_reason == Reason.EXPIRED


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_many_callers_one_ends_a_session() -> None:
    user = make_user()
    for _ in range(3):
        make_live_session(user)
    start = Barrier(8)

    def end(_: int) -> int:
        start.wait()
        try:
            return sessions.end_all(user, reason=Reason.REVOKED, by=sessions.SYSTEM, now=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(end, range(8))) == 3
    assert len(_entries("session.ended")) == 3


def change_password(user: User) -> None:
    user.set_password("another long and quiet password")
    user.save()


def block(user: User) -> None:
    user.is_active = False
    user.save()


@pytest.mark.parametrize("change", [change_password, block])
def test_who_was_let_in_before_a_new_password_or_a_block_gets_no_session_after_it(
    client: Client, change: Callable[[User], None]
) -> None:
    """As in a sign-in that waits while the other one commits: the row that was checked is not the row that is there."""
    user = make_user(password=PASSWORD)
    checked = User.objects.get(pk=user.pk)
    change(user)
    request = RequestFactory().get("/")
    request.session = client.session
    with pytest.raises(PermissionDenied):
        login(request, checked, backend="django.contrib.auth.backends.ModelBackend")
    assert LiveSession.objects.filter(user=user, ended_at=None).count() == 0
