"""Keeps outgoing requests out of private networks (SSRF). The last word is spoken on the address that is dialled.

A resolver alone is no guard, because literal addresses never reach it; so the socket factory checks every address, and
the resolver only drops the wrong ones early. What was checked is what is dialled: a name can't change in between.
"""

from __future__ import annotations

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

from ulak.errors import Misconfigured, Permanent

URL_LIMIT = 2048
_SCHEMES = ("http", "https")
_NAT64 = IPv6Network("64:ff9b::/96")
_GLOBAL_UNICAST = IPv6Network("2000::/3")
# Not reachable from everywhere (IANA special-purpose registries), though some `ipaddress` releases call them global.
_SPECIAL = tuple(
    ip_network(text)
    for text in (
        "100.64.0.0/10",  # shared by carriers
        "192.88.99.0/24",  # 6to4 relays, retired
        "2001::/32",  # Teredo: the real target is inside, behind somebody's relay
        "3fff::/20",  # documentation
    )
)

Address = IPv4Address | IPv6Address


class Blocked(OSError):
    """The address is not a public one. An OSError, because that is what a connector expects of a socket factory."""


def unwrap(address: Address) -> Address:
    """The address that is really reached when a v6 one carries a v4 one: mapped, NAT64 or 6to4."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_public(address: Address) -> bool:
    inner = unwrap(address)
    if isinstance(inner, IPv6Address) and inner not in _GLOBAL_UNICAST:
        return False  # also the local NAT64 prefix 64:ff9b:1::/48, site-local and v4-compatible addresses
    return inner.is_global and not inner.is_multicast and not any(inner in network for network in _SPECIAL)


class Guard:
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

    def check_url(self, text: str) -> URL:
        """The URL, when a request to it may be tried at all; where it leads is seen when it is dialled."""
        url = _parse(text)
        if url.scheme not in _SCHEMES:
            raise Permanent("The webhook URL must start with http:// or https://; correct the recipient.")
        if url.user is not None or url.password is not None:
            raise Permanent("The webhook URL must not carry a user name or password; sign with a secret instead.")
        if not url.host:
            raise Permanent("The webhook URL names no host; correct the recipient.")
        return url.with_fragment(None)

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket factory for TCPConnector: sees the final address of every connection, names and literals alike."""
        family, kind, protocol, _, place = info
        self.check_address(str(place[0]))
        return socket.socket(family, kind, protocol)


class GuardedResolver(AbstractResolver):
    """Gives only those answers of another resolver which the guard permits."""

    def __init__(self, guard: Guard, inner: AbstractResolver | None = None) -> None:
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


def _parse(text: str) -> URL:
    if len(text) > URL_LIMIT or not text.isprintable():
        raise Permanent(f"The webhook URL is longer than {URL_LIMIT} characters or has control characters in it.")
    try:
        url = URL(text)
        _ = url.port, url.host  # parsed late by some releases
    except ValueError:
        raise Permanent("The webhook recipient is not a URL; write it like https://example.org/hook.") from None
    return url


def _network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text)
    except ValueError as error:
        raise Misconfigured(
            f"{text!r} in channels.webhook.allow is no network: {error}. Write it like 10.0.0.0/8."
        ) from None
