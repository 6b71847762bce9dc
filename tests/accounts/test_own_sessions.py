"""One's own sessions: what the page shows, who may end what, and that nobody learns of anybody else's (PS-2)."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from html import unescape
from threading import Barrier
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from apps.accounts import browsers, sessions
from apps.accounts.models import LiveSession, User
from apps.accounts.sessions import Reason
from apps.activity.models import Entry
from tests.accounts.factories import make_expired_session, make_group, make_live_session, make_owner, make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

PAGE, END_OTHERS = "/account/sessions/", "/account/sessions/end-others/"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
CHROME = "Mozilla/5.0 (X11; Linux) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0"
SAFARI = "Mozilla/5.0 AppleWebKit/605.1.15 (KHTML, like Gecko)"


@pytest.fixture
def user(client: Client) -> User:
    user = make_user()
    client.force_login(user)
    return user


def _end(session: object) -> str:
    return f"{PAGE}{session}/end/"


def _mine(client: Client) -> LiveSession:
    return LiveSession.objects.get(pk=client.session[sessions.CARRIED_AS])


def _text(answer: Any) -> str:
    return " ".join(unescape(answer.content.decode()).split())


def _ended_entries() -> list[Entry]:
    return list(Entry.objects.filter(action="session.ended").order_by("pk"))


def _told(answer: Any) -> tuple[int, bytes, dict[str, str]]:
    headers = {name: value for name, value in answer.headers.items() if name != "X-Request-ID"}
    return answer.status_code, answer.content, headers | {"cookies": answer.cookies.output()}


def _look_as(client: Client, user: User) -> User:
    """The client's session is one in which somebody looks at the site as the user."""
    impersonator = make_owner(name="Olive Operator")
    client.force_login(user)
    LiveSession.objects.filter(pk=_mine(client).pk).update(impersonator=impersonator)
    return impersonator


def test_the_page_shows_the_live_ones_and_marks_this_one(client: Client, user: User) -> None:
    make_live_session(user, ip="192.0.2.7", user_agent=FIREFOX, acting_role=make_group(name="Packers"))
    make_live_session(make_user(), ip="198.51.100.9")
    text = _text(client.get(PAGE))
    assert [part in text for part in ("Firefox on Linux", "192.0.2.7", "Packers")] == [True] * 3
    assert "198.51.100.9" not in text
    assert (text.count("This session"), text.count(">End this session<")) == (1, 1)


def test_this_session_comes_first_however_old_it_is(client: Client, user: User) -> None:
    newer = make_live_session(user, started_at=timezone.now() + timedelta(minutes=1))
    text = _text(client.get(PAGE))
    assert text.index(str(_mine(client).pk)) < text.index(str(newer.pk))


def test_the_page_says_who_looked_at_the_site_as_oneself(client: Client, user: User) -> None:
    make_live_session(user, impersonator=make_user(name="Olive Operator"))
    assert "Looked at by Olive Operator" in _text(client.get(PAGE))


def test_the_page_shows_the_ten_that_ended_last_and_why(client: Client, user: User) -> None:
    now = timezone.now()
    for minutes in range(12):
        make_live_session(
            user, ended_at=now - timedelta(minutes=minutes), end_reason=Reason.REVOKED, user_agent=f"agent {minutes}"
        )
    text = _text(client.get(PAGE))
    assert text.count("ended by an administrator") == 10
    assert ("agent 9" in text, "agent 10" in text) == (True, False)


def test_one_whose_time_is_over_is_among_the_ended(client: Client, user: User) -> None:
    row = make_expired_session(user)
    text = _text(client.get(PAGE))
    row.refresh_from_db()
    assert (row.end_reason, "expired" in text, "End this session" in text) == (Reason.EXPIRED, True, False)


@pytest.mark.usefixtures("user")
def test_whoever_is_here_alone_is_told_so(client: Client) -> None:
    text = _text(client.get(PAGE))
    assert "You are signed in nowhere else." in text
    assert "None has ended yet." in text
    assert "End all others" not in text


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        (FIREFOX, "Firefox on Linux"),
        (f"{CHROME} Safari/537.36 Edg/140.0.0.0".replace("X11; Linux", "Windows NT 10.0"), "Edge on Windows"),
        (f"{CHROME} Mobile Safari/537.36".replace("X11; Linux", "Linux; Android 10"), "Chrome on Android"),
        (f"{SAFARI} (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Safari/604.1", "Safari on iPhone"),
        (f"{SAFARI} (Macintosh; Intel Mac OS X 10_15_7) Version/18.5 Safari/605.1.15", "Safari on macOS"),
        ("curl/8.14.1", "curl/8.14.1"),
        ("a" * 300, "a" * 39 + "…"),
        (" ", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_named_in_words_or_as_it_calls_itself(user_agent: str, name: str) -> None:
    assert browsers.name(user_agent) == name


@pytest.mark.usefixtures("user")
def test_a_user_agent_is_text_and_never_markup(client: Client) -> None:
    client.force_login(other := make_user())
    make_live_session(other, user_agent="<b>bold</b>")
    assert b"<b>bold</b>" not in client.get(PAGE).content


def test_ending_another_session_ends_it_and_writes_its_entry(client: Client, user: User) -> None:
    other = make_live_session(user)
    answer = client.post(_end(other.pk), follow=True)
    other.refresh_from_db()
    (entry,) = _ended_entries()
    assert "The session is ended." in _text(answer)
    assert (other.end_reason, _mine(client).ended_at) == (Reason.ENDED_BY_OWNER, None)
    assert (entry.actor_uuid, entry.resource_uuid, entry.mode) == (str(user.pk), str(other.pk), "manual")
    assert (entry.metadata["reason"], entry.ip) == ("ended_by_owner", "127.0.0.1")


def test_an_ended_session_is_signed_out_on_its_next_request(client: Client, user: User) -> None:
    elsewhere = Client()
    elsewhere.force_login(user)
    client.post(_end(_mine(elsewhere).pk))
    assert elsewhere.get("/").json()["user"] == "AnonymousUser"
    assert client.get("/").json()["user"] == user.email


def test_a_second_click_finds_it_over_and_writes_nothing_more(client: Client, user: User) -> None:
    other = make_live_session(user)
    client.post(_end(other.pk))
    assert "That session was over already." in _text(client.post(_end(other.pk), follow=True))
    assert len(_ended_entries()) == 1


def test_a_session_that_ended_otherwise_keeps_its_reason(client: Client, user: User) -> None:
    other = make_live_session(user, ended_at=timezone.now(), end_reason=Reason.REVOKED)
    client.post(_end(other.pk))
    other.refresh_from_db()
    assert other.end_reason == Reason.REVOKED


def test_ending_the_present_session_is_signing_out(client: Client, user: User) -> None:
    row = _mine(client)
    answer = client.post(_end(row.pk))
    row.refresh_from_db()
    (entry,) = _ended_entries()
    assert (answer.headers["Location"], row.end_reason) == ("/sign-in/", Reason.SIGNED_OUT)
    assert entry.actor_uuid == str(user.pk)
    assert client.get("/").json()["user"] == "AnonymousUser"


def test_ending_all_others_keeps_this_one_and_everybody_elses(client: Client, user: User) -> None:
    make_live_session(user)
    make_live_session(user, impersonator=make_owner())
    stranger = make_live_session(make_user())
    answer = client.post(END_OTHERS, follow=True)
    assert "2 other sessions are ended." in _text(answer)
    assert set(LiveSession.objects.filter(ended_at=None)) == {_mine(client), stranger}
    assert {entry.metadata["reason"] for entry in _ended_entries()} == {"ended_by_owner"}


@pytest.mark.usefixtures("user")
def test_ending_all_others_without_any_says_so(client: Client) -> None:
    assert "No other session was open." in _text(client.post(END_OTHERS, follow=True))
    assert _ended_entries() == []


@pytest.mark.usefixtures("user")
def test_somebody_elses_session_and_none_at_all_are_one_answer(client: Client) -> None:
    theirs, over = make_live_session(make_user()), make_expired_session(make_user())
    odd = ("x", "0", "..", "%00", "🙂", str(theirs.pk)[:-1], f"{theirs.pk}0", "end-others")
    answers = [_told(client.post(_end(session))) for session in (theirs.pk, over.pk, uuid4(), *odd)]
    assert answers[0][0] == 404
    assert all(answer == answers[0] for answer in answers)
    theirs.refresh_from_db()
    assert (theirs.ended_at, _ended_entries()) == (None, [])


@pytest.mark.parametrize("path", [PAGE, END_OTHERS, _end("6b0e3a52-1f0c-4d7e-9a55-0c8b3f3c2d11"), _end("x")])
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_visitor_is_sent_to_sign_in(client: Client, method: str, path: str) -> None:
    answer = getattr(client, method)(path)
    assert (answer.status_code, answer.headers["Location"]) == (302, f"/sign-in/?next={PAGE}")


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_a_post_ends_anything(client: Client, user: User, method: str) -> None:
    other = make_live_session(user)
    for path in (_end(other.pk), END_OTHERS):
        assert getattr(client, method)(path).headers["Location"] == PAGE
    other.refresh_from_db()
    assert other.ended_at is None


def test_a_post_without_the_forms_token_ends_nothing() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user := make_user())
    other = make_live_session(user)
    for path in (_end(other.pk), END_OTHERS):
        assert client.post(path).status_code == 403
    other.refresh_from_db()
    assert other.ended_at is None


def test_an_impersonator_sees_the_sessions_and_ends_none(client: Client) -> None:
    _look_as(client, user := make_user())
    other = make_live_session(user)
    page = _text(client.get(PAGE))
    answers = [client.post(path) for path in (_end(other.pk), _end(_mine(client).pk), _end(uuid4()), END_OTHERS)]
    assert ("only they can end them" in page, "End this session" in page, "End all others" in page) == (
        True,
        False,
        False,
    )
    assert {answer.status_code for answer in answers} == {403}
    assert all("You may only look" in _text(answer) for answer in answers)
    assert LiveSession.objects.filter(user=user, ended_at=None).count() == 2


def test_the_person_ends_the_session_of_whoever_looks_as_them(client: Client, user: User) -> None:
    looking = Client()
    impersonator = _look_as(looking, user)
    client.post(_end(_mine(looking).pk))
    assert looking.get("/").json()["user"] == "AnonymousUser"
    assert LiveSession.objects.get(impersonator=impersonator).end_reason == Reason.ENDED_BY_OWNER


def _together(count: int, act: Callable[[int], Any]) -> list[Any]:
    start = Barrier(count)

    def run(number: int) -> Any:
        start.wait()
        try:
            return act(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_of_many_clicks_at_once_one_ends_the_session_and_one_entry_is_written() -> None:
    user = make_user()
    other = make_live_session(user)
    clients = [Client() for _ in range(6)]
    for client in clients:
        client.force_login(user)
    answers = _together(6, lambda number: _text(clients[number].post(_end(other.pk), follow=True)))
    assert sorted("The session is ended." in answer for answer in answers) == [False] * 5 + [True]
    assert [entry.resource_uuid for entry in _ended_entries()] == [str(other.pk)]


@pytest.mark.alone
@pytest.mark.django_db(transaction=True)
def test_two_browsers_that_end_each_other_leave_no_session_ended_twice() -> None:
    user = make_user()
    clients = [Client() for _ in range(4)]
    for client in clients:
        client.force_login(user)
    answers = _together(4, lambda number: clients[number].post(END_OTHERS).status_code)
    entries = [entry.resource_uuid for entry in _ended_entries()]
    assert set(answers) == {302}
    assert len(entries) == len(set(entries)) == LiveSession.objects.exclude(ended_at=None).count()
