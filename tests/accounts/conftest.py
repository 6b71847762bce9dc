"""Account pages alone, and a cheap password hasher: who gets in is tested, not how slow guessing is."""

import pytest
from pytest_django import Settings


@pytest.fixture(autouse=True)
def _accounts_alone(settings: Settings) -> None:
    settings.ROOT_URLCONF = "tests.accounts.urls"
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
