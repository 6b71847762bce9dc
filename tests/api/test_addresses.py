"""The caller's address behind proxies, and its network (KY-6, RL-2)."""

import pytest
from pytest_django import Settings

from apps.api import addresses

REMOTE = "192.0.2.9"


@pytest.mark.parametrize(
    ("hops", "forwarded", "found"),
    [
        (0, None, REMOTE),
        (0, "203.0.113.1", REMOTE),
        (1, "203.0.113.1", "203.0.113.1"),
        (1, "10.0.0.1, 203.0.113.1", "203.0.113.1"),
        (1, " 10.0.0.1 ,\t203.0.113.1 ", "203.0.113.1"),
        (2, "10.0.0.1, 203.0.113.1, 198.51.100.1", "203.0.113.1"),
        (2, "203.0.113.1", REMOTE),
        (1, None, REMOTE),
        (1, "", REMOTE),
        (1, ",", REMOTE),
        (1, "203.0.113.1,", REMOTE),
        (1, "unknown", REMOTE),
        (1, "203.0.113.1:4711", REMOTE),
        (1, "203.0.113.256", REMOTE),
        (1, "\x00", REMOTE),
        (1, "٢٠٣.0.113.1", REMOTE),
        (1, "x" * 100_000, REMOTE),
        (1, "2001:DB8::1", "2001:db8::1"),
        (1, "2001:0db8:0:0:0:0:0:1", "2001:db8::1"),
        (1, "::ffff:203.0.113.1", "203.0.113.1"),
        (1, "fe80::1%eth0", "fe80::1"),
    ],
)
def test_only_what_a_trusted_proxy_wrote_counts(
    settings: Settings, hops: int, forwarded: str | None, found: str
) -> None:
    settings.TRUSTED_PROXY_HOPS = hops
    meta = {"REMOTE_ADDR": REMOTE} | ({} if forwarded is None else {"HTTP_X_FORWARDED_FOR": forwarded})
    assert addresses.caller(meta) == found


@pytest.mark.parametrize("remote", ["", "nope", "unix:", "/run/socket", "1.2.3", "\x00"])
def test_a_server_that_knows_no_address_has_none(remote: str) -> None:
    assert addresses.caller({"REMOTE_ADDR": remote}) == ""
    assert addresses.caller({}) == ""
    assert addresses.network("") == "unknown"


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.9", "192.0.2.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::", "2001:db8:1:2::/64"),
        ("2001:db8:1:3::1", "2001:db8:1:3::/64"),
        ("::1", "::/64"),
    ],
)
def test_a_network_is_an_ipv4_address_or_a_64_of_ipv6(address: str, network: str) -> None:
    assert addresses.network(address) == network
