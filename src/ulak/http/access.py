"""Access: keys are needed when the door listens beyond this machine, or when `http.require_keys` says so.

The decision is made once, by where the door listens, and never by where a request seems to come from: behind a proxy on
this machine every request comes from loopback.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache

from ulak.access.caller import SIGNED, Caller, Forbidden
from ulak.access.keys import KeyRing
from ulak.access.session import COOKIE, Sessions
from ulak.errors import Misconfigured
from ulak.http.failure import Unauthenticated
from ulak.settings import Http

# A proxy leaves these; without keys they mean that somebody else's requests come in here.
_PROXY_MARKS = (b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via")
LOOKS = frozenset({"GET", "HEAD", ""})  # a socket has no method
Head = dict[bytes, bytes]


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False  # a name could mean anything


def keys_required(settings: Http) -> bool:
    return settings.require_keys or not is_loopback(settings.host)


class Access:
    def __init__(self, ring: KeyRing, sessions: Sessions, local: Caller, *, required: bool) -> None:
        self._ring = ring
        self._sessions = sessions
        self._local = local
        self.required = required

    def check_start(self, host: str) -> None:
        """Refuse to open a door to which nobody has a key."""
        if self.required and not self._ring.usable:
            raise Misconfigured(
                f"listening on {host} needs an API key, and there is none; "
                "make one first: ulak keys create ops --scope admin"
            )

    def caller(self, head: Head, method: str) -> Caller:
        authorization = head.get(b"authorization")
        if authorization is not None:
            return self._known(authorization)
        if b"cookie" in head and (found := self._by_cookie(head[b"cookie"])) is not None:
            _check_browser(head, method)
            return found
        if self.required:
            raise Unauthenticated
        _check_local(head)
        if b"sec-fetch-site" in head or b"origin" in head:
            _check_browser(head, method)
        return self._local

    def check_still_known(self, caller: Caller) -> None:
        """A key that was revoked meanwhile: what it has begun to follow ends."""
        if caller.id and caller is not SIGNED and self._ring.by_id(caller.id) is None:
            raise Unauthenticated("this API key was revoked")

    def check_sign_in(self, head: Head) -> None:
        """The one form that a browser sends without a script of ours: no page of another site may fill it in."""
        if not self.required:
            _check_local(head)
        origin = head.get(b"origin")
        foreign = origin is not None and origin.partition(b"://")[2] != head.get(b"host")
        if foreign or head.get(b"sec-fetch-site") not in (None, b"same-origin"):
            raise Forbidden("a page of another site may not sign in here; open the console itself")

    def _by_cookie(self, cookies: bytes) -> Caller | None:
        pairs = (part.strip().partition("=") for part in cookies.decode("latin-1").split(";"))
        cookie = {name: value for name, _, value in pairs}.get(COOKIE)
        return None if cookie is None else self._sessions.caller(cookie)

    def _known(self, authorization: bytes) -> Caller:
        kind, _, token = authorization.partition(b" ")
        caller = self._ring.find(token.strip()) if kind.lower() == b"bearer" else None
        if caller is None:
            raise Unauthenticated(
                "this API key is not known here, or it was revoked; `ulak keys list` shows which there are"
            )
        return caller


def _check_local(head: Head) -> None:
    """Without keys, no page in a browser here may get in, by its origin or by a name that points to this machine."""
    for mark in _PROXY_MARKS:
        if mark in head:
            raise Forbidden(
                f"a proxy ({mark.decode()}) stands before this door, which asks for no keys; "
                "set http.require_keys = true, or take the header away if only this machine can reach the proxy"
            )
    host, origin = head.get(b"host"), head.get(b"origin")
    if host is not None and not _is_this_machine(host):
        raise Forbidden("the Host header must name this machine (localhost, 127.0.0.1 or [::1]), or send an API key")
    # Bodies are read whatever their content type says, so that no browser asks first: this alone keeps pages out.
    if origin is not None and origin.partition(b"://")[2] != host:
        raise Forbidden("a page of another site may not use this door; send an API key")


def _check_browser(head: Head, method: str) -> None:
    """A page of another site may neither look nor act here, whatever its request carries along by itself."""
    site = head.get(b"sec-fetch-site")
    if site is None:
        raise Forbidden(
            "this browser does not say which site asks (Sec-Fetch-Site), as over plain HTTP from another machine; "
            "open the console over TLS or on its own machine, or send an API key"
        )
    if method in LOOKS:
        if site not in (b"same-origin", b"none"):
            raise Forbidden("a page of another site may not look here; open the console itself")
        return
    origin = head.get(b"origin", b"").partition(b"://")[2]
    if site != b"same-origin" or origin != head.get(b"host") or b"x-ulak-console" not in head:
        raise Forbidden("a browser may act here only through the console's own pages; send an API key otherwise")


@lru_cache(maxsize=64)
def _is_this_machine(host: bytes) -> bool:
    """Of a Host header, with or without a port; they are nearly always the same."""
    text = host.decode("latin-1")
    return is_loopback(text.partition("]")[0] + "]" if text.startswith("[") else text.partition(":")[0])
