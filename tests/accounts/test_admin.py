"""The admin pages of people and their sessions."""

import pytest
from django.test import Client

from apps.accounts import sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason
from apps.activity.models import Entry
from tests.accounts.factories import (
    PASSWORD,
    make_expired_session,
    make_group,
    make_live_session,
    make_owner,
    make_user,
)

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]


@pytest.fixture
def owner(client: Client) -> User:
    """Who uses the admin site in these tests."""
    owner = make_owner()
    client.force_login(owner)
    return owner


@pytest.mark.usefixtures("owner")
@pytest.mark.parametrize("query", ["", "?q=member", "?is_active__exact=1", "?email_confirmed_at__isempty=1"])
def test_people_are_listed_searched_and_filtered(client: Client, query: str) -> None:
    make_user(email="member@example.org", groups=[make_group()])
    assert "member@example.org" in client.get(f"/admin/accounts/user/{query}").content.decode()


@pytest.mark.usefixtures("owner")
def test_a_person_is_added_by_address(client: Client) -> None:
    page = client.get("/admin/accounts/user/add/")
    data = {
        "email": "Member@example.org",
        "name": "",
        "usable_password": "true",
        "password1": PASSWORD,
        "password2": PASSWORD,
    }
    client.post("/admin/accounts/user/add/", data)
    assert page.status_code == 200
    assert User.objects.get(email="member@example.org").check_password(PASSWORD)


@pytest.mark.usefixtures("owner")
def test_the_page_of_a_person_leads_to_a_new_password(client: Client) -> None:
    user = make_user()
    text = client.get(f"/admin/accounts/user/{user.pk}/change/").content.decode()
    assert "../password/" in text
    assert client.get(f"/admin/accounts/user/{user.pk}/password/").status_code == 200


def _form(user: User, **changes: str) -> dict[str, str]:
    kept = {"email": user.email, "name": user.name, "referral_code": "", "is_active": "on"}
    return {key: value for key, value in (kept | changes).items() if value is not None}


def test_blocking_a_person_ends_their_sessions(client: Client, owner: User) -> None:
    user = make_user()
    row = make_live_session(user)
    form = _form(user)
    del form["is_active"]
    client.post(f"/admin/accounts/user/{user.pk}/change/", form)
    row.refresh_from_db()
    entry = Entry.objects.get(action="session.ended")
    assert (row.end_reason, entry.actor_uuid) == (Reason.BLOCKED, str(owner.pk))


@pytest.mark.usefixtures("owner")
def test_another_change_of_a_person_ends_nothing(client: Client) -> None:
    row = make_live_session(user := make_user())
    client.post(f"/admin/accounts/user/{user.pk}/change/", _form(user, name="Another"))
    row.refresh_from_db()
    user.refresh_from_db()
    assert (row.ended_at, user.name) == (None, "Another")


@pytest.mark.usefixtures("owner")
def test_a_person_is_deleted_with_their_sessions(client: Client) -> None:
    user = make_user()
    make_live_session(user)
    client.post(f"/admin/accounts/user/{user.pk}/delete/", {"post": "yes"})
    assert not User.objects.filter(pk=user.pk).exists()


@pytest.mark.usefixtures("owner")
def test_sessions_are_filtered_by_whether_they_are_live(client: Client) -> None:
    live, over = (
        make_live_session(make_user(email="l@example.org")),
        make_expired_session(make_user(email="o@example.org")),
    )
    for state, shown, hidden in [("live", live, over), ("over", over, live)]:
        text = client.get(f"/admin/accounts/livesession/?state={state}").content.decode()
        assert (str(shown.pk) in text, str(hidden.pk) in text) == (True, False)
    everything = client.get("/admin/accounts/livesession/").content.decode()
    assert [f'field-state">{word}<' in everything for word in ("live", "expired")] == [True, True]


@pytest.mark.usefixtures("owner")
def test_a_session_is_shown_and_nothing_about_it_can_be_changed(client: Client) -> None:
    row = make_live_session(make_user())
    page = f"/admin/accounts/livesession/{row.pk}"
    assert client.get(f"{page}/change/").status_code == 200
    assert client.post(f"{page}/change/", {"end_reason": "revoked"}).status_code == 403
    assert client.post(f"{page}/delete/", {"post": "yes"}).status_code == 403
    assert client.get("/admin/accounts/livesession/add/").status_code == 403


def test_chosen_sessions_are_ended_by_the_action(client: Client, owner: User) -> None:
    chosen, other = make_live_session(make_user()), make_live_session(make_user())
    data = {"action": "end_sessions", "_selected_action": [str(chosen.pk)]}
    answer = client.post("/admin/accounts/livesession/", data, follow=True)
    assert "1 session ended." in answer.content.decode()
    assert LiveSession.objects.get(pk=chosen.pk).end_reason == Reason.REVOKED
    assert LiveSession.objects.get(pk=other.pk).ended_at is None
    assert Entry.objects.get(action="session.ended").actor_uuid == str(owner.pk)


def test_who_may_only_look_is_not_offered_the_action(client: Client) -> None:
    viewer = make_user(is_staff=True, permissions=["accounts.view_livesession"])
    client.force_login(viewer)
    row = make_live_session(make_user())
    client.post("/admin/accounts/livesession/", {"action": "end_sessions", "_selected_action": [str(row.pk)]})
    assert LiveSession.objects.get(pk=row.pk).ended_at is None


def test_a_stranger_sees_neither_page(client: Client) -> None:
    client.force_login(make_user(is_staff=True))
    assert client.get("/admin/accounts/user/").status_code == 403
    assert client.get("/admin/accounts/livesession/").status_code == 403


def test_the_owners_own_session_can_be_ended_too(client: Client, owner: User) -> None:
    mine = client.session[sessions.CARRIED_AS]
    client.post("/admin/accounts/livesession/", {"action": "end_sessions", "_selected_action": [mine]})
    assert client.get("/").json()["user"] == "AnonymousUser"
    assert LiveSession.objects.get(user=owner).end_reason == Reason.REVOKED
