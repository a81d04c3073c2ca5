"""The guard: which addresses are public, in every wrapping, and which URLs may be tried."""

from __future__ import annotations

import ipaddress
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.channels.ssrf import URL_LIMIT, AddressGuard, Blocked, GuardedResolver, check_url, is_public, unwrap
from ulak.errors import Misconfigured, Permanent

PRIVATE_V4 = [
    "0.0.0.0",
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "168.63.129.16",  # a cloud's wire server
    "192.0.0.1",
    "192.0.0.8",
    "192.0.0.192",  # a cloud's metadata service
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "224.0.1.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
]
PRIVATE_V6 = [
    "::",
    "::1",
    "::7f00:1",  # v4-compatible
    "64:ff9b:1::7f00:1",  # local NAT64
    "64:ff9b:1::808:808",
    "100::1",
    "2001::1",  # Teredo
    "2001:4860::5efe:127.0.0.1",  # ISATAP
    "2001:4860::200:5efe:10.0.0.1",
    "2001:0:808:808::f7f7:f7f7",
    "2001:db8::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",  # a cloud's metadata service
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "ff0e::1",
]
PUBLIC = ["1.1.1.1", "8.8.8.8", "93.184.216.34", "2606:4700:4700::1111", "2a00:1450:4001:81b::200e"]


def wrappings(v4: str) -> dict[str, str]:
    number = int(ipaddress.IPv4Address(v4))
    return {
        "mapped": str(ipaddress.IPv6Address((0xFFFF << 32) | number)),
        "nat64": str(ipaddress.IPv6Address((0x64FF9B << 96) | number)),
        "6to4": str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80) | 1)),
    }


@pytest.mark.parametrize("address", PRIVATE_V4 + PRIVATE_V6)
def test_an_address_that_is_not_public_is_refused(address):
    with pytest.raises(Blocked):
        AddressGuard().check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_passes(address):
    AddressGuard().check_address(address)


@pytest.mark.parametrize("address", PRIVATE_V4)
def test_a_private_address_is_seen_through_every_wrapping(address):
    for wrapped in wrappings(address).values():
        assert not AddressGuard().permits(wrapped), wrapped


def test_a_public_address_passes_in_every_wrapping():
    assert all(AddressGuard().permits(wrapped) for wrapped in wrappings("8.8.8.8").values())


@given(st.ip_addresses(v=4))
def test_wrapping_never_changes_the_verdict(address):
    for wrapped in wrappings(str(address)).values():
        assert unwrap(ipaddress.ip_address(wrapped)) == address
        assert is_public(ipaddress.ip_address(wrapped)) == is_public(address)


@given(st.ip_addresses())
def test_what_python_calls_private_is_never_public(address):
    if is_public(address):
        inner = unwrap(address)
        assert not any((inner.is_private, inner.is_loopback, inner.is_link_local, inner.is_multicast))
        assert not any((inner.is_reserved, inner.is_unspecified))


def test_an_allowed_network_opens_itself_and_nothing_else():
    guard = AddressGuard(["10.1.0.0/16", "fd00::/8"])
    assert guard.permits("10.1.2.3")
    assert guard.permits("::ffff:10.1.2.3")
    assert guard.permits("fd00::5")
    assert not guard.permits("10.2.0.1")
    assert not guard.permits("127.0.0.1")


@pytest.mark.parametrize("network", ["10.0.0.0/33", "localhost", "10.0.0.1/8", ""])
def test_a_wrong_network_stops_the_start_and_is_named(network):
    with pytest.raises(Misconfigured, match=r"channels\.webhook\.allow"):
        AddressGuard([network])


@pytest.mark.parametrize("text", ["localhost", "0x7f.1", "", "1.1.1.1.1"])
def test_what_is_no_address_is_refused(text):
    assert not AddressGuard().permits(text)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.org/", "http://"),
        ("file:///etc/passwd", "http://"),
        ("gopher://example.org", "http://"),
        ("example.org/hook", "http://"),
        ("", "http://"),
        ("https://user@example.org/", "user name"),
        ("https://user:word@example.org/", "user name"),
        ("https://:word@example.org/", "user name"),
        ("https:///path", "no host"),
        ("https://example.org:99999/", "not a URL"),
        ("https://[::1/", "not a URL"),
        ("https://example.org/\r\nX: y", "control characters"),
        ("https://example.org/" + "x" * URL_LIMIT, "longer than"),
    ],
)
def test_a_url_that_may_not_be_called_is_refused_with_its_reason(url, reason):
    with pytest.raises(Permanent, match=reason) as caught:
        check_url(url)
    assert "word" not in str(caught.value).replace("password", "")


@pytest.mark.parametrize(
    "url", ["http://example.org", "https://example.org:8443/a?b=c#d", "https://çiçek.example/", "http://[::1]:80/"]
)
def test_a_proper_url_passes_on_any_port(url):
    assert check_url(url).fragment == ""


@given(st.text(max_size=60) | st.builds("http://{}".format, st.text(max_size=60)))
def test_any_text_is_a_url_or_refused(text):
    try:
        url = check_url(text)
    except Permanent:
        return
    assert url.scheme in {"http", "https"}
    assert url.host


async def test_the_resolver_keeps_public_answers_only():
    class Mixed:
        async def resolve(self, host, port=0, family=socket.AF_UNSPEC):
            return [
                {"hostname": host, "host": ip, "port": port, "family": family, "proto": 0, "flags": 0} for ip in ips
            ]

        async def close(self):
            """Nothing to close."""

    ips = ["10.0.0.1", "8.8.8.8", "::1"]
    resolver = GuardedResolver(AddressGuard(), Mixed())
    assert [answer["host"] for answer in await resolver.resolve("mixed.example", 80)] == ["8.8.8.8"]
    ips = ["10.0.0.1", "::1"]
    with pytest.raises(Blocked, match=r"private\.example"):
        await resolver.resolve("private.example", 80)
    await resolver.close()
