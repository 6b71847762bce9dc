"""The sign-in page: who gets in, what a wrong log-in reads, where it leads (PS-7)."""

import re
from html import unescape
from typing import Any

import pytest
import time_machine
from django.contrib.auth.hashers import MD5PasswordHasher
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from apps.accounts import doors
from apps.accounts.models import LiveSession
from tests.accounts.factories import PASSWORD, make_owner, make_user, switch_on

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db]

WRONG = "The e-mail address or the password is not right."


class CountingHasher(MD5PasswordHasher):
    """Counts the hashes that a request costs: what makes one answer slower than another."""

    algorithm = "counting"
    count = 0

    def encode(self, password: str, salt: str) -> str:
        type(self).count += 1
        return super().encode(password, salt)


def _sign_in(client: Client, email: str, password: str = PASSWORD, **more: str) -> Any:
    return client.post("/sign-in/", {"username": email, "password": password, **more})


def _text(answer: Any) -> str:
    return unescape(answer.content.decode())


@pytest.mark.parametrize("spelling", ["member@example.org", "MEMBER@Example.org", "  member@example.org "])
def test_the_right_password_opens_for_any_spelling_of_the_address(client: Client, spelling: str) -> None:
    user = make_user(email="member@example.org", password=PASSWORD)
    assert _sign_in(client, spelling).status_code == 302
    assert client.get("/").json()["user"] == user.email


def test_every_wrong_log_in_reads_the_same_and_costs_the_same(client: Client, settings: Settings) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    known = make_user(password=PASSWORD, email_confirmed_at=timezone.now(), referral_code="A CODE")
    blocked = make_user(password=PASSWORD, is_active=False)
    without, unconfirmed = make_user(), make_user(password=PASSWORD)
    switch_on("accounts_email_required", "accounts_referral_required")
    answers, costs = set(), set()
    attempts = [
        (known.email, "wrong"),
        (blocked.email, PASSWORD),
        (blocked.email, "wrong"),
        (without.email, "wrong"),
        (unconfirmed.email, "wrong"),
        ("nobody@example.org", "wrong"),
        ("no address at all", "wrong"),
    ]
    for email, password in attempts:
        CountingHasher.count = 0
        page = client.get("/sign-in/")
        answer = _sign_in(client, email, password)
        text = _text(answer).replace(email, "…").replace(str(answer.context["csrf_token"]), "…")
        answers.add((answer.status_code, page.status_code, text))
        costs.add(CountingHasher.count)
    assert len(answers) == 1
    assert costs == {1}
    assert WRONG in answers.pop()[2]
    assert not LiveSession.objects.exists()


def test_a_refusal_is_announced_keeps_the_address_and_forgets_the_password(client: Client) -> None:
    text = _text(_sign_in(client, "member@example.org", "a wrong secret"))
    assert 'role="alert"' in text
    assert 'value="member@example.org"' in text
    assert "a wrong secret" not in text


@pytest.mark.parametrize(
    ("email", "password"), [("", "x"), ("member@example.org", ""), ("", ""), ("a\x00b@example.org", "x")]
)
def test_an_incomplete_form_is_answered_and_never_an_error(client: Client, email: str, password: str) -> None:
    answer = _sign_in(client, email, password)
    assert (answer.status_code, 'role="alert"' in _text(answer)) == (200, True)


@pytest.mark.parametrize(
    ("target", "location"),
    [
        ("/who-async/", "/who-async/"),
        ("", "/"),
        ("https://elsewhere.example.org/", "/"),
        ("//elsewhere.example.org/", "/"),
        ("http:///elsewhere.example.org", "/"),
        ("\\\\elsewhere.example.org", "/"),
        ("javascript:alert(1)", "/"),
    ],
)
def test_the_way_on_stays_on_this_host(client: Client, target: str, location: str) -> None:
    user = make_user(password=PASSWORD)
    assert _sign_in(client, user.email, next=target).headers["Location"] == location


def test_the_page_needs_its_token() -> None:
    strict = Client(enforce_csrf_checks=True)
    user = make_user(password=PASSWORD)
    answer = _sign_in(strict, user.email)
    assert (answer.status_code, "Nothing was changed." in _text(answer)) == (403, True)


def test_the_page_and_its_answers_are_not_stored_by_caches(client: Client) -> None:
    assert "no-store" in client.get("/sign-in/").headers["Cache-Control"]


def test_the_page_has_nothing_inline(client: Client) -> None:
    text = _text(client.get("/sign-in/"))
    assert re.search(r"<style|<script(?![^>]* src=)|<[^>]* (style|on\w+)=", text) is None


def test_fields_name_what_a_password_manager_fills_in(client: Client) -> None:
    text = _text(client.get("/sign-in/"))
    assert 'autocomplete="username"' in text
    assert 'autocomplete="current-password"' in text


def test_a_signed_in_person_goes_on_and_is_told_when_a_page_is_not_theirs(client: Client) -> None:
    user = make_user(name="Somebody")
    client.force_login(user)
    assert client.get("/sign-in/").headers["Location"] == "/"
    assert "You are signed in as Somebody" in _text(client.get("/sign-in/?next=/admin/"))


def test_signing_in_as_another_ends_the_session_left_behind(client: Client) -> None:
    first, second = make_user(), make_user(password=PASSWORD)
    client.force_login(first)
    _sign_in(client, second.email)
    assert LiveSession.objects.get(user=first).end_reason == "signed_out"
    assert client.get("/").json()["user"] == second.email


def test_signing_out_is_a_post(client: Client) -> None:
    client.force_login(make_user())
    assert client.get("/sign-out/").status_code == 405
    assert client.post("/sign-out/").headers["Location"] == "/sign-in/"
    assert client.get("/").json()["user"] == "AnonymousUser"


def test_an_account_is_closed_after_its_attempts_even_for_the_right_password(client: Client) -> None:
    user = make_user(password=PASSWORD)
    with time_machine.travel("2030-01-01T00:00:00Z", tick=False) as clock:
        for number in range(doors.ACCOUNT.attempts):
            assert _sign_in(client, user.email.upper() if number % 2 else user.email, "wrong").status_code == 200
        refused = _sign_in(client, user.email)
        assert (refused.status_code, "Too many attempts" in _text(refused)) == (429, True)
        assert 1 <= int(refused.headers["Retry-After"]) <= doors.ACCOUNT.seconds
        clock.shift(doors.ACCOUNT.seconds + 1)
        assert _sign_in(client, user.email).status_code == 302


@time_machine.travel("2030-01-01T00:00:00Z", tick=False)
def test_an_account_that_does_not_exist_is_closed_alike(client: Client) -> None:
    for _ in range(doors.ACCOUNT.attempts):
        _sign_in(client, "nobody@example.org")
    assert _sign_in(client, "nobody@example.org").status_code == 429


@time_machine.travel("2030-01-01T00:00:00Z", tick=False)
def test_a_network_is_closed_after_its_attempts_and_then_harms_no_account(client: Client) -> None:
    user = make_user(password=PASSWORD)
    for number in range(doors.NETWORK.attempts):
        assert _sign_in(client, f"nobody{number}@example.org").status_code == 200
    for _ in range(doors.ACCOUNT.attempts):
        assert _sign_in(client, user.email, "wrong").status_code == 429
    elsewhere = Client(REMOTE_ADDR="192.0.2.77")
    assert _sign_in(elsewhere, user.email).status_code == 302


def test_the_admin_site_signs_in_by_the_same_page(client: Client) -> None:
    owner = make_owner(password=PASSWORD)
    answer = client.post("/admin/login/?next=/admin/accounts/", {"username": owner.email, "password": PASSWORD})
    assert answer.headers["Location"] == "/sign-in/?next=/admin/accounts/"
    assert client.get("/admin/login/").headers["Location"] == "/sign-in/?next=/admin/"
    client.force_login(owner)
    assert client.get("/admin/login/").headers["Location"] == "/admin/"


def test_a_person_who_is_no_staff_is_not_sent_round_in_circles(client: Client) -> None:
    client.force_login(make_user())
    answer = client.get("/admin/", follow=True)
    assert (answer.status_code, answer.request["PATH_INFO"]) == (200, "/sign-in/")
