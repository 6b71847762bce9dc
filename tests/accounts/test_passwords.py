"""A new password ends the other sessions, whichever door sets it."""

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.test import Client
from pytest_django import Settings

from apps.accounts import passwords, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason
from apps.activity.models import Entry
from tests.accounts.factories import PASSWORD, make_live_session, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

NEW = "another quiet password"


def _reasons(user: User) -> set[str]:
    return set(LiveSession.objects.filter(user=user).exclude(ended_at=None).values_list("end_reason", flat=True))


def _entry() -> Entry:
    return Entry.objects.get(action="session.password_changed")


def _sign_in(client: Client, user: User) -> LiveSession:
    client.force_login(user)
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def test_a_change_keeps_the_session_that_it_came_from(client: Client) -> None:
    user = make_user(password=PASSWORD)
    other, mine = make_live_session(user), _sign_in(client, user)
    client.post("/new-password/", {"new": NEW})
    other.refresh_from_db()
    mine.refresh_from_db()
    assert (mine.ended_at, other.end_reason) == (None, Reason.PASSWORD_CHANGED)
    assert (_entry().actor_uuid, _entry().resource_uuid) == (str(user.pk), str(user.pk))


def test_a_change_that_keeps_none_is_a_reset() -> None:
    user = make_user(password=PASSWORD)
    make_live_session(user)
    passwords.change(user, NEW, keep=None)
    assert _reasons(user) == {Reason.PASSWORD_RESET}
    assert authenticate(username=user.email, password=NEW) == user


@pytest.mark.parametrize("method", ["get", "post"])
def test_the_admin_sites_own_page_is_ours(client: Client, method: str) -> None:
    _sign_in(client, make_owner(password=PASSWORD))
    answer = getattr(client, method)("/admin/password_change/")
    assert answer.headers["Location"] == "/password/change/"


def test_of_two_changes_by_one_old_password_the_second_does_nothing() -> None:
    user = make_user(password=PASSWORD)
    late = User.objects.get(pk=user.pk)
    assert passwords.change(user, NEW, keep=None)
    assert not passwords.change(late, "a third quiet password", keep=None)
    late.name = "saved later"
    late.save(update_fields=["name"])
    assert authenticate(username=user.email, password=NEW) == user
    assert Entry.objects.filter(action="session.password_changed").count() == 1


def test_an_administrator_who_sets_anothers_password_ends_all_their_sessions(client: Client) -> None:
    owner, user = make_owner(), make_user(password=PASSWORD)
    make_live_session(user)
    mine = _sign_in(client, owner)
    data = {"password1": NEW, "password2": NEW, "usable_password": "true", "set-password": "1"}
    assert client.post(f"/admin/accounts/user/{user.pk}/password/", data).status_code == 302
    assert _reasons(user) == {Reason.PASSWORD_RESET}
    assert _entry().actor_uuid == str(owner.pk)
    assert client.get("/").json()["session"] == str(mine.pk)


def test_an_administrator_who_takes_a_password_away_ends_all_their_sessions(client: Client) -> None:
    user = make_user(password=PASSWORD)
    make_live_session(user)
    _sign_in(client, make_owner())
    data = {"usable_password": "false", "unset-password": "1"}
    client.post(f"/admin/accounts/user/{user.pk}/password/", data)
    assert _reasons(user) == {Reason.PASSWORD_RESET}


def test_ones_own_password_is_changed_on_the_page_that_asks_for_the_old_one(client: Client) -> None:
    owner = make_owner()
    client.force_login(owner)
    answer = client.post(f"/admin/accounts/user/{owner.pk}/password/", {"password1": NEW, "password2": NEW})
    assert answer.headers["Location"] == "/admin/password_change/"


def test_a_command_that_sets_a_password_ends_all_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    user = make_user(password=PASSWORD)
    make_live_session(user)
    monkeypatch.setattr("getpass.getpass", lambda **_: NEW)
    call_command("changepassword", user.email)
    assert _reasons(user) == {Reason.PASSWORD_RESET}
    assert _entry().actor_kind == "system"


def test_signing_in_and_other_changes_end_nothing(client: Client) -> None:
    user = make_user(password=PASSWORD)
    make_live_session(user)
    client.force_login(user)
    user.name = "Another name"
    user.save()
    assert _reasons(user) == set()
    assert not Entry.objects.filter(action="session.password_changed").exists()


def test_a_hash_that_is_renewed_at_sign_in_ends_nothing(client: Client, settings: Settings) -> None:
    user = make_user(password=PASSWORD)
    make_live_session(user)
    settings.PASSWORD_HASHERS = [
        "django.contrib.auth.hashers.ScryptPasswordHasher",
        "django.contrib.auth.hashers.MD5PasswordHasher",
    ]
    client.post("/sign-in/", {"username": user.email, "password": PASSWORD})
    user.refresh_from_db()
    assert user.password.startswith("scrypt")
    assert _reasons(user) == set()


def test_a_password_whose_entry_cannot_be_written_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    user = make_user(password=PASSWORD)
    monkeypatch.setattr("apps.activity.actions.SESSION_PASSWORD_CHANGED", "not declared")
    with pytest.raises(ValueError, match="declared"):
        passwords.change(user, NEW, keep=None)
    assert authenticate(username=user.email, password=PASSWORD) == user
