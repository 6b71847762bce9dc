"""The upgrade of a password's hash at a sign-in: an old password never comes back by it, and two at once both get in."""

import threading
from typing import Any

import pytest
from django.contrib.auth import hashers
from django.db import connection
from django.test import Client

from apps.accounts import passwords
from apps.accounts.models import LiveSession, User
from tests.accounts.factories import make_user

pytestmark = [pytest.mark.sqlite, pytest.mark.django_db(transaction=True)]

HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher", "django.contrib.auth.hashers.PBKDF2PasswordHasher"]
OLD, NEW = "an old and known password", "a new and secret password"


@pytest.fixture
def user(settings: Any) -> User:
    """Their hash is of a kind that is replaced at the next sign-in."""
    settings.PASSWORD_HASHERS = HASHERS
    user = make_user()
    User.objects.filter(pk=user.pk).update(password=hashers.make_password(OLD, hasher="pbkdf2_sha256"))
    return user


def sign_in(user: User, client: Client) -> int:
    return int(client.post("/sign-in/", {"username": user.email, "password": OLD}).status_code)


def test_a_sign_in_upgrades_an_old_hash(user: User, client: Client) -> None:
    assert sign_in(user, client) == 302
    assert User.objects.get(pk=user.pk).password.startswith("md5")


def test_a_password_that_is_changed_during_the_upgrade_stays_and_the_old_one_lets_nobody_in(
    user: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = hashers.make_password

    def slow(raw: str) -> str:
        monkeypatch.setattr(hashers, "make_password", real)
        assert passwords.change(User.objects.get(pk=user.pk), NEW, keep=None)
        return real(raw)

    monkeypatch.setattr(hashers, "make_password", slow)
    assert sign_in(user, client) == 403
    assert User.objects.get(pk=user.pk).check_password(NEW)
    assert LiveSession.objects.filter(user=user, ended_at=None).count() == 0


@pytest.mark.alone
def test_two_sign_ins_that_upgrade_at_once_both_get_in(user: User, monkeypatch: pytest.MonkeyPatch) -> None:
    start, real, found = threading.Barrier(2), hashers.make_password, list[int]()

    def both(raw: str) -> str:
        start.wait(10)
        return real(raw)

    def run() -> None:
        found.append(sign_in(user, Client()))
        connection.close()

    monkeypatch.setattr(hashers, "make_password", both)
    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [302, 302]
    assert User.objects.get(pk=user.pk).password.startswith("md5")
