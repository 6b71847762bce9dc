"""The pages on which people change and reset their passwords: what they end, what they tell, and how often they may be tried."""

import re
from functools import partial
from threading import Event
from typing import Any

import pytest
import time_machine
from django.contrib.auth import authenticate
from django.core.mail.backends.locmem import EmailBackend
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from apps.accounts import doors, mails, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason
from apps.activity.models import Entry
from tests.accounts import mailbox
from tests.accounts.factories import PASSWORD, make_live_session, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

NEW = "another quiet password"
CHANGE, RESET, SENT = "/password/change/", "/password/reset/", "/password/reset/done/"
NOON = "2030-01-01T12:00:00Z"


@pytest.fixture
def user() -> User:
    """Somebody with PASSWORD."""
    return make_user(email="member@example.org", name="Member", password=PASSWORD)


def _signed_in(client: Client, user: User) -> LiveSession:
    client.force_login(user)
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _change(client: Client, old: str = PASSWORD, new: str = NEW) -> Any:
    return client.post(CHANGE, {"old_password": old, "new_password1": new, "new_password2": new})


def _ask(client: Client, email: str, **headers: Any) -> Any:
    return client.post(RESET, {"email": email}, **headers)


def _open(client: Client, link: str) -> str:
    """Where the form of the mail's link is."""
    return str(client.get(link).headers["Location"])


def _set(client: Client, form: str, new: str = NEW) -> Any:
    return client.post(form, {"new_password1": new, "new_password2": new})


def _opens(user: User, password: str) -> bool:
    return authenticate(username=user.email, password=password) is not None


def test_a_change_keeps_this_session_and_ends_the_others(client: Client, user: User) -> None:
    elsewhere = Client()
    other, mine = _signed_in(elsewhere, user), _signed_in(client, user)
    assert _change(client).headers["Location"] == "/password/change/done/"
    assert "signed out everywhere else" in client.get("/password/change/done/").content.decode()
    assert client.get("/").json()["session"] == str(mine.pk)
    assert elsewhere.get("/").json()["user"] == "AnonymousUser"
    other.refresh_from_db()
    assert (other.end_reason, _opens(user, NEW)) == (Reason.PASSWORD_CHANGED, True)


def test_a_change_is_recorded_with_its_request(client: Client, user: User) -> None:
    _signed_in(client, user)
    client.post(
        CHANGE,
        {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW},
        headers={"X-Request-ID": "r-7"},
        REMOTE_ADDR="192.0.2.7",
    )
    entry = Entry.objects.get(action="session.password_changed")
    assert (entry.actor_uuid, entry.ip, entry.request_id) == (str(user.pk), "192.0.2.7", "r-7")


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("wrong", NEW, "old password was entered incorrectly"),
        (PASSWORD, "short", "too short"),
        (PASSWORD, "member@example.org", "too similar"),
        ("", NEW, "required"),
    ],
)
def test_a_refused_change_says_why_and_changes_nothing(
    client: Client, user: User, old: str, new: str, text: str
) -> None:
    other = make_live_session(user)
    _signed_in(client, user)
    page = _change(client, old, new)
    said = page.content.decode()
    assert (page.status_code, text in said, 'role="alert"' in said) == (200, True, True)
    assert NEW not in said
    other.refresh_from_db()
    assert (other.ended_at, _opens(user, PASSWORD)) == (None, True)


def test_guesses_at_the_old_password_are_limited_wherever_they_come_from(client: Client, user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        _signed_in(client, user)
        for number in range(doors.OLD_PASSWORD.account.attempts):
            client.defaults["REMOTE_ADDR"] = f"192.0.2.{number}"
            assert _change(client, "wrong").status_code == 200
        refused = _change(client)
        assert (refused.status_code, "Too many attempts" in refused.content.decode()) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= 300
        clock.shift(301)
        assert _change(client).status_code == 302


def test_a_change_that_comes_second_is_told_so(client: Client, user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _signed_in(client, user)
    changed = User.check_password

    def check_and_be_overtaken(user: User, raw: str) -> bool:
        good = changed(user, raw)
        User.objects.filter(pk=user.pk).update(password="md5$salt$of-somebody-faster")
        return good

    monkeypatch.setattr(User, "check_password", check_and_be_overtaken)
    page = _change(client)
    assert (page.status_code, "changed elsewhere" in page.content.decode()) == (200, True)
    assert User.objects.get(pk=user.pk).password == "md5$salt$of-somebody-faster"


def test_who_has_no_password_is_told_so(client: Client) -> None:
    _signed_in(client, make_user())
    page = client.get(CHANGE).content.decode()
    assert "has no password" in page
    assert "old_password" not in page


@pytest.mark.parametrize("path", [CHANGE, "/password/change/done/"])
def test_a_visitor_signs_in_before_a_change(client: Client, path: str) -> None:
    assert client.get(path).headers["Location"] == f"/sign-in/?next={path}"


def test_the_pages_are_kept_by_no_cache_and_have_nothing_inline(client: Client, user: User) -> None:
    _ask(client, user.email)
    form = _open(client, mailbox.link())
    client.force_login(user)
    for path in (
        CHANGE,
        "/password/change/done/",
        RESET,
        SENT,
        form,
        "/password/reset/complete/",
        "/password/reset/a/b/",
    ):
        page = client.get(path)
        assert "no-store" in page.headers["Cache-Control"], path
        assert re.search(r"<style|<script(?![^>]* src=)|<[^>]* (style|on\w+)=", page.content.decode()) is None, path


def test_nobody_changes_a_password_while_looking_as_somebody_else(client: Client, user: User) -> None:
    mine = _signed_in(client, user)
    LiveSession.objects.filter(pk=mine.pk).update(impersonator=make_owner())
    assert client.get(CHANGE).status_code == 200
    assert _change(client).status_code == 403
    assert _opens(user, PASSWORD)


def test_a_reset_leads_from_the_mail_to_a_new_password_and_signs_nobody_in(client: Client, user: User) -> None:
    running = make_live_session(user)
    assert _ask(client, "  MEMBER@Example.org ").headers["Location"] == SENT
    link = mailbox.link()
    form = _open(client, link)
    assert _set(client, form).headers["Location"] == "/password/reset/complete/"
    assert "/sign-in/" in client.get("/password/reset/complete/").content.decode()
    running.refresh_from_db()
    assert (running.end_reason, client.get("/").json()["user"]) == (Reason.PASSWORD_RESET, "AnonymousUser")
    assert (_opens(user, NEW), _opens(user, PASSWORD)) == (True, False)
    assert Entry.objects.get(action="session.password_changed").actor_uuid == str(user.pk)


def test_a_reset_ends_the_session_of_the_browser_that_did_it_too(client: Client, user: User) -> None:
    _ask(client, user.email)
    _signed_in(client, user)
    User.objects.update(last_login=None)
    _ask(client, user.email)
    _set(client, _open(client, mailbox.link()))
    assert client.get("/").json()["user"] == "AnonymousUser"


def test_the_token_is_not_in_the_address_of_the_form(client: Client, user: User) -> None:
    _ask(client, user.email)
    link = mailbox.link()
    answer = client.get(link)
    token = link.rstrip("/").rpartition("/")[2]
    assert answer.status_code == 302
    assert token not in answer.headers["Location"] + client.get(answer.headers["Location"]).content.decode()


def test_the_link_leads_to_the_address_of_the_site_whatever_host_was_asked(client: Client, user: User) -> None:
    _ask(client, user.email, HTTP_HOST="localhost", HTTP_X_FORWARDED_HOST="elsewhere.example.org")
    (mail,) = mailbox.sent()
    assert (mail.to, "localhost" in mail.body, "elsewhere" in mail.body) == ([user.email], False, False)
    assert "http://testserver/password/reset/" in mail.body


def test_a_link_works_once(client: Client, user: User) -> None:
    _ask(client, user.email)
    link, other = mailbox.link(), Client()
    form, again = _open(client, link), _open(other, link)
    _set(client, form)
    for page in (_set(other, again, "a third quiet password"), client.get(link), client.get(form)):
        assert "This link is no longer good" in page.content.decode()
    assert _opens(user, NEW)


def test_a_link_works_for_an_hour(client: Client, user: User) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        _ask(client, user.email)
        link = mailbox.link()
        clock.shift(3599)
        assert client.get(link).status_code == 302
        clock.shift(2)
        assert "This link is no longer good" in client.get(link).content.decode()


@pytest.mark.parametrize(
    "change",
    [
        {"is_active": False},
        {"password": "!"},
        {"email": "bea@example.org"},
        {"last_login": timezone.now()},
    ],
    ids=["blocked", "password taken away", "another address", "signed in since"],
)
def test_a_link_is_good_for_the_person_as_they_were(client: Client, user: User, change: dict[str, Any]) -> None:
    _ask(client, user.email)
    link = mailbox.link()
    User.objects.filter(pk=user.pk).update(**change)
    assert "This link is no longer good" in client.get(link).content.decode()


@pytest.mark.parametrize("ending", ["a/b", "!/set-password", "MQ/set-password", "a/b-c", "%00/x"])
def test_a_link_that_is_none_of_ours_is_a_page_and_no_error(client: Client, ending: str) -> None:
    page = client.get(f"/password/reset/{ending}/")
    assert (page.status_code, "This link is no longer good" in page.content.decode()) == (200, True)


def test_the_answer_tells_nobody_whose_address_it_is(client: Client, user: User) -> None:
    blocked, without = make_user(password=PASSWORD, is_active=False), make_user()
    answers, queries = set(), set()
    for email in (user.email, blocked.email, without.email, "nobody@example.org"):
        with CaptureQueriesContext(connection) as asked:
            answer = _ask(client, email)
            queries.add(len(asked))
        sent = client.get(answer.headers["Location"]).content
        answers.add(
            (answer.status_code, answer.content, sent, str(sorted(answer.headers.items() - _of_this_one(answer))))
        )
    assert (len(answers), queries) == (1, {1})
    assert [mail.to for mail in mailbox.sent()] == [[user.email]]


def _of_this_one(answer: Any) -> Any:
    """Its id, and the second in which it expires."""
    return {(name, answer.headers[name]) for name in ("X-Request-ID", "Expires")}


class SilentServer(EmailBackend):
    """Takes a mail when it is let go on."""

    goes_on = Event()

    def send_messages(self, messages: Any) -> int:
        assert self.goes_on.wait(30)
        return int(super().send_messages(messages))


def test_the_answer_does_not_wait_for_the_mail(client: Client, user: User, settings: Settings) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.SilentServer"
    SilentServer.goes_on.clear()
    try:
        assert _ask(client, user.email).status_code == 302
    finally:
        SilentServer.goes_on.set()
    assert len(mailbox.sent()) == 1


class BrokenServer(EmailBackend):
    def send_messages(self, messages: Any) -> int:
        raise OSError("connection refused")


def test_a_mail_that_cannot_be_sent_is_logged_without_its_address(
    client: Client, user: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.BrokenServer"
    assert _ask(client, user.email).status_code == 302
    assert mailbox.sent() == []
    assert "connection refused" in caplog.text
    assert user.email not in caplog.text


def test_mails_beyond_those_that_may_wait_are_dropped(
    client: Client, user: User, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.EMAIL_BACKEND = f"{__name__}.SilentServer"
    SilentServer.goes_on.clear()
    try:
        for _ in range(mails.WAITING + 1):
            mails.send("password_reset", user, path="/x/")
    finally:
        SilentServer.goes_on.set()
    assert len(mailbox.sent()) == mails.WAITING
    assert "Too many mails wait" in caplog.text


@pytest.mark.parametrize("email", ["member@example.org", "nobody@example.org"])
@pytest.mark.usefixtures("user")
def test_an_address_is_written_to_so_often_and_no_more(client: Client, email: str) -> None:
    with time_machine.travel(NOON, tick=False) as clock:
        for _ in range(doors.RESET.account.attempts):
            assert _ask(client, email).status_code == 302
        refused = _ask(Client(REMOTE_ADDR="192.0.2.9"), email.upper())
        assert (refused.status_code, "Too many attempts" in refused.content.decode()) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= 900
        clock.shift(901)
        assert _ask(client, email).status_code == 302


@time_machine.travel(NOON, tick=False)
def test_a_network_asks_so_often_and_no_more(client: Client, user: User) -> None:
    for number in range(doors.RESET.network.attempts if doors.RESET.network else 0):
        assert _ask(client, f"nobody{number}@example.org").status_code == 302
    assert _ask(client, user.email).status_code == 429
    assert _ask(Client(REMOTE_ADDR="192.0.2.9"), user.email).status_code == 302


def test_an_address_that_is_none_is_said_to_be_none(client: Client) -> None:
    page = _ask(client, "no address")
    assert (page.status_code, 'role="alert"' in page.content.decode(), mailbox.sent()) == (200, True, [])


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_two_who_open_one_link_at_once_one_sets_the_password(user: User) -> None:
    browsers = [Client(), Client()]
    _ask(browsers[0], user.email)
    link = mailbox.link()
    forms = [_open(browser, link) for browser in browsers]
    news = ["the first quiet password", "the second quiet password"]
    acts = [partial(_set, browsers[number], forms[number], news[number]) for number in range(2)]
    assert sorted(answer.status_code for answer in mailbox.at_once(acts)) == [200, 302]
    assert [_opens(user, new) for new in news].count(True) == 1
    assert Entry.objects.filter(action="session.password_changed").count() == 1
