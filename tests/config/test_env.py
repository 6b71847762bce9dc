"""The environment: typed values, and errors that name the variable and never its secret."""

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from config import env

pytestmark = pytest.mark.sqlite


@pytest.mark.parametrize(
    ("read", "value", "expected"),
    [
        (lambda: env.flag("X", default=False), "Yes", True),
        (lambda: env.flag("X", default=True), "off", False),
        (lambda: env.flag("X", default=True), "", True),
        (lambda: env.number("X", default=3), " 7 ", 7),
        (lambda: env.number("X", default=3), "", 3),
        (lambda: env.names("X"), "a, b,,c ", ["a", "b", "c"]),
        (lambda: env.url("X"), "https://a.example.org:8443/", "https://a.example.org:8443"),
        (lambda: env.secrets("X"), f"new:{'n' * 16}, old:{'o' * 16}", {"new": "n" * 16, "old": "o" * 16}),
        (lambda: env.secrets("X"), f"a:{'b:' * 8}", {"a": "b:" * 8}),
        (lambda: env.networks("X"), "10.0.0.0/8, ::1,", [ip_network("10.0.0.0/8"), ip_network("::1/128")]),
        (lambda: env.networks("X"), "", []),
        (
            lambda: env.mail_server("X", ""),
            "smtp+tls://us%40er:p%3Aw@mail.example.org:587",
            {
                "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
                "EMAIL_HOST": "mail.example.org",
                "EMAIL_PORT": 587,
                "EMAIL_HOST_USER": "us@er",
                "EMAIL_HOST_PASSWORD": "p:w",
                "EMAIL_USE_SSL": False,
                "EMAIL_USE_TLS": True,
            },
        ),
    ],
)
def test_a_value_is_read_as_its_type(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], Any], value: str, expected: Any
) -> None:
    monkeypatch.setenv("X", value)

    assert read() == expected


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (lambda: env.mail_server("X", ""), "http://mail.example.org"),
        (lambda: env.mail_server("X", ""), "smtp://mail.example.org:many"),
        (lambda: env.text("X"), None),
        (lambda: env.flag("X", default=False), "maybe"),
        (lambda: env.number("X", default=3), "x"),
        (lambda: env.number("X", default=3, minimum=1), "0"),
        (lambda: env.names("X", None), " , "),
        (lambda: env.url("X"), "example.org"),
        (lambda: env.networks("X"), "10.0.0.1/8"),
        (lambda: env.networks("X"), "example.org"),
        (lambda: env.url("X"), "https://example.org/path"),
        (lambda: env.secrets("X"), "no-id-and-secret-at-all"),
        (lambda: env.secrets("X"), "a:too-short"),
        (lambda: env.secrets("X"), f":{'s' * 16}"),
        (lambda: env.secrets("X"), f"a:{'s' * 16},a:{'t' * 16}"),
    ],
)
def test_a_missing_or_malformed_value_stops_the_start_and_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[], Any], value: str | None
) -> None:
    if value is None:
        monkeypatch.delenv("X", raising=False)
    else:
        monkeypatch.setenv("X", value)

    with pytest.raises(ImproperlyConfigured, match=r"\bX\b") as refused:
        read()
    assert not value or len(value) < 2 or value not in str(refused.value)
