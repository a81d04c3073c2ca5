"""Who may look and act in the console: a key in a form, a sealed cookie, and no page of another site."""

from __future__ import annotations

import asyncio
from itertools import product

import aiohttp
import pytest

from tests.api.serving import serving
from ulak.access.caller import Forbidden
from ulak.access.keys import revoke_key
from ulak.access.session import COOKIE, Sessions
from ulak.clock import ManualClock

SAME = {"sec-fetch-site": "same-origin"}


@pytest.fixture
async def locked(monkeypatch):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True}) as one:
        one.admin = await one.make_key("admin")
        yield one


async def log_in(served, key):
    answer = await served.session.post(
        f"{served.address}/console/login", data={"key": key}, allow_redirects=False, headers=SAME
    )
    return answer.status, answer.cookies.get(COOKIE)


async def test_without_a_session_a_page_leads_to_the_form(locked):
    answer = await locked.session.get(f"{locked.address}/console/jobs", allow_redirects=False)
    assert (answer.status, answer.headers["location"]) == (303, "/console/login")
    root = await locked.session.get(f"{locked.address}/", allow_redirects=False)
    assert (root.status, root.headers["location"]) == (307, "/console/")
    assert (await locked.get("/console/login")).status == 200
    assert (await locked.get("/api/jobs")).status == 401


@pytest.mark.parametrize(("enabled", "status"), [(True, 303), (False, 401)])
async def test_without_a_key_the_description_leads_to_the_form_where_there_is_one(monkeypatch, enabled, status):
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**{"http.require_keys": True, "console.enabled": enabled}) as one:
        browser = {"accept": "text/html", "sec-fetch-site": "none"}
        answer = await one.session.get(f"{one.address}/docs", allow_redirects=False, headers=browser)
        assert (answer.status, answer.headers.get("location")) == (status, "/console/login" if enabled else None)


async def test_a_key_opens_a_session_that_is_sealed(locked):
    status, cookie = await log_in(locked, locked.admin)
    assert status == 303
    assert (cookie["httponly"], cookie["samesite"].lower()) == (True, "strict")
    headers = {"cookie": f"{COOKIE}={cookie.value}", **SAME}
    assert (await locked.get("/console/jobs", headers=headers)).status == 200
    assert (await locked.get("/api/jobs", headers=headers)).status == 200
    forged = {"cookie": f"{COOKIE}={cookie.value[:-1]}x", **SAME}
    assert (await locked.get("/api/jobs", headers=forged)).status == 401
    locked.session.cookie_jar.clear()


@pytest.mark.parametrize(
    "foreign", [{"sec-fetch-site": "cross-site"}, {"origin": "http://evil.example"}], ids=["site", "origin"]
)
async def test_a_page_of_another_site_can_not_sign_somebody_in(locked, foreign):
    answer = await locked.session.post(
        f"{locked.address}/console/login", data={"key": locked.admin}, allow_redirects=False, headers=foreign
    )
    assert (answer.status, COOKIE in answer.cookies) == (403, False)


async def test_where_no_key_is_needed_one_still_opens_a_session_with_its_scopes():
    async with serving() as served:
        status, cookie = await log_in(served, await served.make_key("compute"))
        assert status == 303
        served.session.cookie_jar.clear()
        headers = {"cookie": f"{COOKIE}={cookie.value}", **SAME}
        assert (await served.get("/api/compute/tasks", headers=headers)).status == 200
        assert (await served.get("/api/jobs", headers=headers)).status == 403  # the key's scopes, not this machine's


async def test_a_wrong_key_is_told_so(locked):
    assert await log_in(locked, "ulak_nonsense") == (401, None)


async def test_a_revoked_key_ends_what_it_follows(locked):
    key = await locked.make_key("look")
    stream = await locked.session.get(
        f"{locked.address}/api/overview/stream", headers={"authorization": f"Bearer {key}"}
    )
    await stream.content.readuntil(b"event: overview")
    assert (await locked.ask("DELETE", f"/api/keys/{key.split('_')[1]}", key=locked.admin)).status == 204
    with pytest.raises(aiohttp.ClientPayloadError):
        async with asyncio.timeout(30):
            await stream.content.read()


async def test_a_session_ends_after_eight_hours(locked):
    clock = ManualClock()
    sessions = Sessions(locked.door.ring, clock)
    await sessions.load(locked.ulak.store)
    cookie = sessions.begin(locked.door.ring.find(locked.admin.encode()))
    clock.advance(8 * 3600 - 1)
    assert sessions.caller(cookie).name == "test"
    clock.advance(1)
    assert sessions.caller(cookie) is None


async def test_a_session_can_not_be_lengthened(locked):
    key, ends_at, seal = locked.door.sessions.begin(locked.door.ring.find(locked.admin.encode())).split(".")
    assert locked.door.sessions.caller(f"{key}.{ends_at}.{seal}") is not None
    for forged in (
        f"{key}.{int(ends_at) + 3600}.{seal}",
        f"other.{ends_at}.{seal}",
        f"{key}.{ends_at}",
        "",
        "...",
        "ı.1.x",
    ):
        assert locked.door.sessions.caller(forged) is None


@pytest.mark.parametrize(("proto", "secure"), [("https", True), ("http", "")])
async def test_behind_tls_the_cookie_goes_over_tls_only(locked, proto, secure):
    answer = await locked.session.post(
        f"{locked.address}/console/login",
        data={"key": locked.admin},
        allow_redirects=False,
        headers={**SAME, "x-forwarded-proto": proto},
    )
    cookie = answer.cookies[COOKIE]
    assert (cookie["secure"], cookie["httponly"], cookie["samesite"]) == (secure, True, "Strict")
    assert int(cookie["max-age"]) == 8 * 3600
    locked.session.cookie_jar.clear()


async def test_a_revoked_key_ends_its_session(locked):
    _, cookie = await log_in(locked, locked.admin)
    locked.session.cookie_jar.clear()
    identifier = locked.admin.split("_")[1]
    await locked.ulak.store.write(revoke_key, identifier)
    await locked.door.ring.load(locked.ulak.store)
    headers = {"cookie": f"{COOKIE}={cookie.value}", **SAME}
    assert (await locked.get("/api/jobs", headers=headers)).status == 401


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_can_not_look_with_the_cookie(locked, site):
    _, cookie = await log_in(locked, locked.admin)
    locked.session.cookie_jar.clear()
    headers = {"cookie": f"{COOKIE}={cookie.value}", "sec-fetch-site": site}
    assert (await locked.get("/console/jobs", headers=headers)).status == 403
    assert (await locked.get("/api/jobs", headers=headers)).status == 403


@pytest.mark.parametrize(
    "missing", ["origin", "x-ulak-console", "sec-fetch-site"], ids=lambda name: f"without a right {name}"
)
async def test_acting_needs_the_consoles_own_page(locked, missing):
    _, cookie = await log_in(locked, locked.admin)
    locked.session.cookie_jar.clear()
    good = {"cookie": f"{COOKIE}={cookie.value}", "origin": locked.address, "x-ulak-console": "1", **SAME}
    assert (await locked.post("/api/jobs", {"kind": "a.b"}, headers=good)).status == 202
    wrong = {"origin": "http://evil.example", "sec-fetch-site": "cross-site"}
    bad = {name: value for name, value in good.items() if name != missing} | {
        name: value for name, value in wrong.items() if name == missing
    }
    assert (await locked.post("/api/jobs", {"kind": "a.b"}, headers=bad)).status == 403
    left_out = {name: value for name, value in good.items() if name != missing}
    assert (await locked.post("/api/jobs", {"kind": "a.b"}, headers=left_out)).status == 403


SITES = (None, b"same-origin", b"none", b"same-site", b"cross-site", b"")
ORIGINS = (
    None,
    b"http://127.0.0.1:8025",
    b"https://127.0.0.1:8025",
    b"http://127.0.0.1:3000",
    b"null",
    b"127.0.0.1:8025",
)
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


def heads():
    """Every way in which a browser, or somebody who plays one, may mark a request."""
    for site, origin, console, method in product(SITES, ORIGINS, (None, b"1"), METHODS):
        marks = {b"sec-fetch-site": site, b"origin": origin, b"x-ulak-console": console}
        yield {b"host": b"127.0.0.1:8025", **{name: one for name, one in marks.items() if one is not None}}, method


def is_the_consoles_own(head, method):
    """The rule as it is promised."""
    if method in {"GET", "HEAD"}:
        return head.get(b"sec-fetch-site") in {b"same-origin", b"none"}
    own = {b"http://127.0.0.1:8025", b"https://127.0.0.1:8025"}  # TLS ends before the door
    return head.get(b"sec-fetch-site") == b"same-origin" and head.get(b"origin") in own and b"x-ulak-console" in head


def is_let_in(access, head, method):
    try:
        access.caller(head, method)
    except Forbidden:
        return False
    return True


async def test_every_request_by_cookie_is_judged_by_what_a_browser_says_of_it(locked):
    _, cookie = await log_in(locked, locked.admin)
    sent = {b"cookie": f"{COOKIE}={cookie.value}".encode()}
    wrong = [
        (head, method)
        for head, method in heads()
        if is_let_in(locked.door.access, head | sent, method) is not is_the_consoles_own(head, method)
    ]
    assert wrong == []
    locked.session.cookie_jar.clear()


async def test_without_keys_whoever_plays_a_browser_is_judged_and_other_clients_are_as_before():
    async with serving() as served:
        for head, method in heads():
            if not head.keys() & {b"sec-fetch-site", b"origin"}:
                assert is_let_in(served.door.access, head, method)  # curl
            elif not is_the_consoles_own(head, method):
                assert not is_let_in(served.door.access, head, method), (head, method)
            elif head.get(b"origin", b"://127.0.0.1:8025").endswith(b"://127.0.0.1:8025"):
                assert is_let_in(served.door.access, head, method), (head, method)


async def test_a_key_that_is_sent_needs_no_marks_of_a_browser(locked):
    headers = {"sec-fetch-site": "cross-site", "origin": "http://evil.example"}
    assert (await locked.post("/api/jobs", {"kind": "a.b"}, key=locked.admin, headers=headers)).status == 202


async def test_without_keys_a_browser_is_held_to_the_same_rules():
    async with serving() as served:
        form = {"origin": served.address, "sec-fetch-site": "same-origin"}
        assert (await served.post("/api/jobs", {"kind": "a.b"}, headers=form)).status == 403
        assert (await served.post("/api/jobs", {"kind": "a.b"}, headers={**form, "x-ulak-console": "1"})).status == 202
        assert (await served.post("/api/jobs", {"kind": "a.b"})).status == 202  # curl
        assert (await served.get("/api/jobs", headers={"sec-fetch-site": "cross-site"})).status == 403


async def test_look_opens_every_get_and_nothing_else(locked):
    key = await locked.make_key("look")
    for path in (
        "/api/jobs",
        "/api/keys",
        "/api/compute/stats",
        "/api/notifications",
        "/helpers",
        "/api/actions/plans",
    ):
        assert (await locked.get(path, key=key)).status == 200, path
    assert (await locked.post("/api/jobs", {"kind": "a.b"}, key=key)).status == 403
    assert (await locked.get("/api/jobs?reveal=true", key=key)).status in {400, 403}
