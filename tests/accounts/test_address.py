"""The caller's address (KY-6) and the network that a limit counts."""

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from apps.accounts import address


@pytest.mark.parametrize(
    ("hops", "remote", "forwarded", "expected"),
    [
        (0, "192.0.2.7", "198.51.100.1", "192.0.2.7"),
        (1, "10.0.0.1", "198.51.100.1, 203.0.113.9", "203.0.113.9"),
        (2, "10.0.0.1", "198.51.100.1, 203.0.113.9", "198.51.100.1"),
        (3, "10.0.0.1", "198.51.100.1, 203.0.113.9", "10.0.0.1"),
        (1, "10.0.0.1", "", "10.0.0.1"),
        (1, "10.0.0.1", "<script>", "10.0.0.1"),
        (0, "", "", None),
        (0, "::ffff:192.0.2.7", "", "192.0.2.7"),
        (0, "2001:DB8::0001", "", "2001:db8::1"),
        (0, "fe80::1%eth0", "", "fe80::1"),
    ],
)
def test_the_address_is_what_the_trusted_proxies_say(
    settings: Settings, hops: int, remote: str, forwarded: str, expected: str | None
) -> None:
    settings.TRUSTED_PROXY_HOPS = hops
    request = RequestFactory().get("/", REMOTE_ADDR=remote, HTTP_X_FORWARDED_FOR=forwarded)
    assert address.of(request) == expected


@pytest.mark.parametrize(
    ("remote", "expected"),
    [("192.0.2.7", "192.0.2.7"), ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"), ("", "unknown")],
)
def test_a_network_is_an_ipv4_address_or_a_64_of_ipv6(remote: str, expected: str) -> None:
    assert address.network(RequestFactory().get("/", REMOTE_ADDR=remote)) == expected
