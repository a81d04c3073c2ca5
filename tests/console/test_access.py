"""Who may look and act in the console: a key in a form, a sealed cookie, and no page of another site."""

from __future__ import annotations

import pytest

from tests.api.serving import serving
from ulak.access.keys import revoke_key
from ulak.access.session import COOKIE

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
    assert (await locked.get("/console/login")).status == 200
    assert (await locked.get("/api/jobs")).status == 401


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
