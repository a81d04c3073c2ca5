"""Keeps outgoing requests out of private networks (SSRF). The last word is spoken on the address that is dialled.

A resolver alone does not guard, because literal addresses never reach it; so the socket factory checks every address,
and the resolver only drops the wrong ones early. The address that was checked is dialled: a name can't change in
between.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ulak.errors import Misconfigured, Permanent

URL_LIMIT = 2048
_SCHEMES = ("http", "https")
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?", re.IGNORECASE)
# No name ends like this: `127.1` and `0x7f000001` are addresses in spellings that only some resolvers read.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.IGNORECASE)
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# What is not global unicast, by IANA's special-purpose registries, and what clouds keep at public addresses.
# The list is ours: which of these `ipaddress` knows depends on the interpreter's release (CVE-2024-4032).
_NOT_GLOBAL = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers; also a cloud's metadata service (100.100.100.200)
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # Azure's wire server
        "169.254.0.0/16",  # link-local: metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments; also a cloud's metadata service (192.0.0.192)
        "192.0.2.0/24",  # documentation
        "192.31.196.0/24",  # AS112
        "192.52.193.0/24",  # AMT
        "192.88.99.0/24",  # 6to4 relays, retired
        "192.168.0.0/16",  # private
        "192.175.48.0/24",  # AS112
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
        "2001::/23",  # protocol assignments: Teredo, benchmarks, ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: the v4 address inside decides, see `unwrap`
        "2620:4f:8000::/48",  # AS112
        "3fff::/20",  # documentation
    )
)
# An interface id of 0000:5efe or 0200:5efe before a v4 address: ISATAP, a tunnel to that address.
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})

Address = IPv4Address | IPv6Address


class Blocked(OSError):
    """The address is not a public one. An OSError, because that is what a connector expects of a socket factory."""


def unwrap(address: Address) -> Address:
    """The address that is really reached when a v6 one carries a v4 one: mapped, NAT64, 6to4 or ISATAP."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64 or int(address) >> 32 & 0xFFFF_FFFF in _ISATAP:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    inner = unwrap(address)
    if isinstance(inner, IPv6Address) and inner not in _GLOBAL_UNICAST:
        return False  # also the local NAT64 prefix 64:ff9b:1::/48, site-local and v4-compatible addresses
    return not any(inner.version == network.version and inner in network for network in _NOT_GLOBAL)


class AddressGuard:
    """Lets public addresses pass, and those of the networks in `allow`. Any port may be dialled."""

    def __init__(self, allow: Iterable[str] = ()) -> None:
        self._allow = [_network(text) for text in allow]

    def permits(self, text: str) -> bool:
        try:
            address = ip_address(text)
        except ValueError:
            return False
        return is_public(address) or any(address in network or unwrap(address) in network for network in self._allow)

    def check_address(self, text: str) -> None:
        if not self.permits(text):
            raise Blocked(f"{text} is not a public address")

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket factory for TCPConnector: sees the final address of every connection, names and literals alike."""
        family, kind, protocol, _, place = info
        self.check_address(str(place[0]))
        return socket.socket(family, kind, protocol)


class GuardedResolver(AbstractResolver):
    """Gives only those answers of another resolver which the guard permits."""

    def __init__(self, guard: AddressGuard, inner: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._inner = inner or aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        answers = await self._inner.resolve(host, port, family)
        permitted = [answer for answer in answers if self._guard.permits(answer["host"])]
        if answers and not permitted:
            raise Blocked(f"{host} has no public address")
        return permitted

    async def close(self) -> None:
        await self._inner.close()


def check_url(text: str, provider: str = "WEBHOOK") -> URL:
    """The URL in its normal form, if a request to it may be tried. Where it leads is seen when it is dialled."""
    code = f"{provider}_INVALID_URL"
    url = _parse(text, code)
    if url.scheme not in _SCHEMES:
        raise _unusable("The webhook URL must start with http:// or https://; correct the recipient.", code)
    if url.user is not None or url.password is not None:
        raise _unusable("The webhook URL must not carry a user name or password; sign with a secret instead.", code)
    host = url.host
    if not host or not _is_host(url):
        raise _unusable("The webhook URL names no host that can be looked up; correct the recipient.", code)
    if not url.port:
        raise _unusable("The webhook URL has port 0; correct the recipient.", code)
    url = url.with_fragment(None)
    if host.endswith("."):  # the same name, written out to the root
        url = url.with_host(host[:-1])
    return url.with_path("/", keep_query=True) if url.path == "/" else url


@lru_cache(maxsize=4096)
def normal_url(text: str) -> str:
    """One spelling for one endpoint: small letters in scheme and host, no default port, dot segments or fragment."""
    return str(check_url(text))


def is_url(text: str) -> bool:
    """Whether a request to it may be tried."""
    try:
        normal_url(text)
    except Permanent:
        return False
    return True


def _is_host(url: URL) -> bool:
    host = url.raw_host or ""
    try:
        ip_address(host)
    except ValueError:
        labels = host.removesuffix(".").split(".")
        return len(host) <= 253 and all(map(_LABEL.fullmatch, labels)) and not _NUMBER.fullmatch(labels[-1])
    return True


def _parse(text: str, code: str) -> URL:
    if len(text) > URL_LIMIT or not text.isprintable() or " " in text:
        raise _unusable(
            f"The webhook URL is longer than {URL_LIMIT} characters or has spaces or control characters.", code
        )
    try:
        url = URL(text)
        _ = url.port, url.host  # parsed late by some releases
    except ValueError:
        raise _unusable("The webhook recipient is not a URL; write it like https://example.org/hook.", code) from None
    return url


def _unusable(message: str, code: str) -> Permanent:
    return Permanent(message, code=code, unsent=True)


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise Misconfigured(
            f"{text!r} in channels.webhook.allow is not a network: {error}. Write it like 10.0.0.0/8."
        ) from None
