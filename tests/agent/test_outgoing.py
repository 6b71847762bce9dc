"""Where a model's base URL may lead: every spelling of an inner address is refused, and a name by what it means when it is called."""

import asyncio
import socket
from ipaddress import ip_address, ip_network
from typing import Any

import pytest

from apps.agent.providers import outgoing
from apps.agent.providers.outgoing import Forbidden
from tests.agent.providers import BOTH, LOOPBACK, WIRES, answer, connection_to, failure
from tests.agent.wire.script import Finish, Refuse, Say

INNER = [
    "127.0.0.1", "127.8.8.8", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1",
    "100.100.100.200", "0.0.0.1", "192.0.0.192", "198.18.0.1", "192.0.2.1", "203.0.113.5", "224.0.0.1", "240.0.0.1",
    "255.255.255.255", "168.63.129.16", "192.88.99.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fd00:ec2::254",
    "fec0::1", "ff02::1", "2001:db8::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1",
    "::10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2001:0:1::1",
]  # fmt: skip


@pytest.mark.parametrize("address", INNER)
def test_an_inner_address_is_refused(address: str) -> None:
    with pytest.raises(Forbidden):
        outgoing.check_addresses([address], (), is_encrypted=True)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101"])
def test_a_public_address_may_be_called_by_https_alone(address: str) -> None:
    assert outgoing.check_addresses([address], (), is_encrypted=True) == [str(ip_address(address))]
    with pytest.raises(Forbidden, match="https"):
        outgoing.check_addresses([address], (), is_encrypted=False)


def test_one_inner_address_among_public_ones_refuses_the_name() -> None:
    with pytest.raises(Forbidden):
        outgoing.check_addresses(["1.1.1.1", "10.0.0.1"], (), is_encrypted=True)


def test_a_name_that_leads_nowhere_is_refused() -> None:
    with pytest.raises(Forbidden):
        outgoing.check_addresses([], (), is_encrypted=True)


@pytest.mark.parametrize("address", ["10.1.2.3", "::ffff:10.1.2.3"])
def test_an_address_of_the_operators_networks_may_be_called_by_http_too(address: str) -> None:
    networks = (ip_network("10.1.0.0/16"),)
    assert outgoing.check_addresses([address], networks, is_encrypted=False) == [str(ip_address(address))]
    with pytest.raises(Forbidden):
        outgoing.check_addresses(["10.2.0.1"], networks, is_encrypted=True)


@pytest.mark.parametrize(
    "url",
    [
        "", "ftp://example.org", "file:///etc/passwd", "example.org/v1", "https://", "https:///v1", "http://example.org/v1",
        "https://user@example.org", "https://user:secret@example.org", "https://example.org:99999", "https://example.org?a=b",
        "https://example.org/#a", "https://127.0.0.1", "https://[::1]/v1", "https://[::ffff:10.0.0.1]", "https://[fe80::1%25eth0]/",
        "https://169.254.169.254/latest", "https://[broken",
    ],
)  # fmt: skip
def test_an_address_that_can_be_told_to_be_wrong_is_refused_when_it_is_typed(url: str) -> None:
    with pytest.raises(Forbidden) as refused:
        outgoing.check_url(url, ())
    assert "secret" not in str(refused.value)


def test_an_ordinary_address_may_be_typed() -> None:
    outgoing.check_url("https://openrouter.ai/api/v1", ())
    outgoing.check_url("http://ollama.example.org:11434/v1", LOOPBACK)


@BOTH
def test_the_providers_own_machine_is_not_called_without_the_operators_word(name: str) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        assert failure(connection_to(wire, networks=())).code == "endpoint_forbidden"
        assert wire.opened == 0


SPELLINGS = ["localhost", "0x7f.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0177.0.0.1"]


@BOTH
@pytest.mark.parametrize("host", SPELLINGS)
def test_a_name_that_leads_inside_is_refused_when_it_is_called(name: str, host: str) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as wire:
        url = wire.url.replace("127.0.0.1", host).replace("http://", "https://")
        assert failure(connection_to(wire, base_url=url, networks=())).code == "endpoint_forbidden"
        assert wire.opened == 0


class Rebinding:
    """A name server that tells one thing first and another afterwards."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.asked = list(addresses), 0

    async def getaddrinfo(self, host: str, port: int, **_: Any) -> Any:
        address = self.addresses[min(self.asked, len(self.addresses) - 1)]
        self.asked += 1
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


def test_a_name_is_asked_once_and_the_checked_address_is_the_one_that_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The name server is the Internet's part of this: what it says the second time must not matter.
    names = Rebinding("127.0.0.1", "10.9.9.9")
    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", lambda _loop, *a, **k: names.getaddrinfo(*a, **k))
    with WIRES["openai"]([Say("Yes."), Finish()]) as wire:
        url = wire.url.replace("127.0.0.1", "rebinding.example.org")
        assert len(answer(connection_to(wire, base_url=url))) == 2
        assert wire.requests[0].headers["host"] == f"rebinding.example.org:{wire.port}"
    assert names.asked == 1


@BOTH
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(name: str, status: int) -> None:
    with WIRES[name]([Say("Yes."), Finish()]) as inner:
        with WIRES[name]([Refuse(status, {}, {"Location": f"{inner.url}/v1/messages"})]) as wire:
            assert failure(connection_to(wire)).code in {"provider_invalid", "provider_refused"}
        assert inner.opened == 0
