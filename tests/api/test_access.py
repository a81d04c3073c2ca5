"""Who gets in: open on loopback without keys, with a key and its scopes everywhere else, and no way around it."""

import asyncio

import pytest
import pytest_asyncio
from fastapi import APIRouter, Request
from structlog.testing import capture_logs

from tests.api.serving import serving, settings_for
from ulak import Ulak, codec
from ulak.access.keys import list_keys
from ulak.errors import Misconfigured
from ulak.http import app
from ulak.http.access import is_loopback, keys_required
from ulak.http.caller import caller_of
from ulak.http.hot_routes import HotRoute, Routes, reply
from ulak.settings import Http

KEYS = {"http.require_keys": True}


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.9.1", "localhost", "::1"])
def test_loopback_needs_no_keys(host):
    assert is_loopback(host)
    assert not keys_required(Http(host=host))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "ulak.example.com", "localhost.example.com"])
def test_any_other_address_needs_keys(host):
    assert keys_required(Http(host=host))


async def test_a_door_beyond_this_machine_does_not_open_without_a_key():
    with pytest.raises(Misconfigured, match="ulak keys create"):
        async with serving(**{"http.host": "0.0.0.0"}):
            pass


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def locked():
    """A server that asks for keys, and so far has none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
        async with serving(**KEYS) as served:
            yield served


@pytest.mark.parametrize("path", ["/api/jobs", "/metrics", "/docs", "/openapi.json", "/api/keys", "/nowhere"])
@pytest.mark.asyncio(loop_scope="module")
async def test_every_request_needs_a_key(locked, path):
    answer = await locked.get(path)
    assert (answer.status, answer.body["error"]) == (401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hot_route_needs_a_key_too(locked):
    assert (await locked.post("/api/jobs", {"kind": "mail"})).status == 401


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.asyncio(loop_scope="module")
async def test_probes_need_none(locked, path):
    assert (await locked.get(path)).status == 200


@pytest.mark.parametrize(
    ("scope", "opened"),
    [
        ("jobs", {"/api/jobs", "/api/dead", "/api/events"}),
        ("metrics", {"/metrics"}),
        ("admin", {"/api/jobs", "/api/dead", "/api/events", "/metrics", "/api/keys", "/api/breakers", "/api/db"}),
        ("notify", set()),
        ("reveal", set()),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_scope_opens_its_routes_and_no_others(locked, scope, opened):
    key = await locked.make_key(scope)
    every = ["/api/jobs", "/api/dead", "/api/events", "/metrics", "/api/keys", "/api/breakers", "/api/db"]
    statuses = {path: (await locked.get(path, key=key)).status for path in every}
    assert statuses == {path: 200 if path in opened else 403 for path in every}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_hot_route_asks_for_its_scope(locked):
    job = {"kind": "mail"}
    assert (await locked.post("/api/jobs", job, key=await locked.make_key("jobs"))).status == 202
    assert (await locked.post("/api/jobs", job, key=await locked.make_key("metrics"))).status == 403


@pytest.mark.parametrize(
    "header",
    ["Bearer", "Bearer ", "Bearer ulak_", "Bearer ulak_0000000000_x", "Basic dWxhazp1bGFr", "ulak_a_b", "Bearer \xff"],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_key_is_refused(locked, header):
    assert (await locked.get("/api/jobs", headers={"authorization": header})).status == 401


@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_with_a_changed_secret_is_refused(locked):
    key = await locked.make_key("admin")
    assert (await locked.get("/api/jobs", key=key[:-1] + ("a" if key[-1] != "a" else "b"))).status == 401


@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_key_is_refused_where_none_is_needed(shared):
    assert (await shared.get("/api/jobs", key="ulak_0000000000_x")).status == 401


@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_is_bound_to_its_scopes_where_none_is_needed(shared):
    assert (await shared.get("/api/jobs", key=await shared.make_key("notify"))).status == 403


@pytest.mark.asyncio(loop_scope="module")
async def test_a_revoked_key_opens_nothing(locked):
    key = await locked.make_key("admin")
    identifier = key.split("_")[1]
    assert (await locked.ask("DELETE", f"/api/keys/{identifier}", key=key)).status == 204
    assert (await locked.get("/api/jobs", key=key)).status == 401


async def test_a_key_is_made_listed_and_revoked_over_http():
    async with serving() as served:
        made = await served.post("/api/keys", {"name": "shop", "scopes": ["jobs"]})
        assert made.status == 201
        assert (await served.get("/api/jobs", key=made.body["token"])).status == 200
        listed = (await served.get("/api/keys")).body["keys"]
        assert [(key["name"], key["scopes"], key["revokedAt"]) for key in listed] == [("shop", ["jobs"], None)]
        assert made.body["token"] not in (await served.get("/api/keys")).text
        await served.ask("DELETE", f"/api/keys/{made.body['id']}")
        assert (await served.get("/api/keys")).body["keys"][0]["revokedAt"] is not None
        assert (await served.ask("DELETE", f"/api/keys/{made.body['id']}")).status == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_no_key_gives_away_a_scope_that_it_lacks(locked):
    admin = await locked.make_key("admin")
    assert (await locked.post("/api/keys", {"name": "spy", "scopes": ["reveal"]}, key=admin)).status == 403
    assert (await locked.post("/api/keys", {"name": "ok", "scopes": ["jobs"]}, key=admin)).status == 201


@pytest.mark.parametrize(
    "body", [{"name": "x", "scopes": ["nothing"]}, {"name": "", "scopes": ["jobs"]}, {"name": "x"}]
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_needs_a_name_and_known_scopes(body, shared):
    assert (await shared.post("/api/keys", body)).status == 400


@pytest.mark.asyncio(loop_scope="module")
async def test_a_key_is_kept_as_a_hash(locked):
    key = await locked.make_key("admin")
    rows = await locked.ulak.store.read(list_keys)
    assert key.split("_", 2)[2] not in str(rows)


@pytest.mark.parametrize("mark", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"])
@pytest.mark.asyncio(loop_scope="module")
async def test_a_proxy_on_loopback_does_not_open_the_door(mark, shared):
    answer = await shared.get("/api/jobs", headers={mark: "203.0.113.9"})
    assert answer.status == 403
    assert "http.require_keys" in answer.body["message"]
    key = await shared.make_key("jobs")
    assert (await shared.get("/api/jobs", key=key, headers={mark: "203.0.113.9"})).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "ulak.evil.example"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost.evil.example"},
        {"Origin": "http://localhost:3000", "Host": "localhost:8025"},
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_web_page_can_not_use_the_open_door(headers, shared):
    assert (await shared.post("/api/jobs", {"kind": "mail"}, headers=headers)).status == 403


@pytest.mark.asyncio(loop_scope="module")
async def test_a_page_of_this_door_may_use_it(shared):
    headers = {"Origin": "http://localhost:8025", "Host": "localhost:8025", "X-Ulak-Console": "1"}
    assert (
        await shared.post("/api/jobs", {"kind": "mail"}, headers=headers)
    ).status == 403  # no browser says so little
    headers["Sec-Fetch-Site"] = "same-origin"
    assert (await shared.post("/api/jobs", {"kind": "mail"}, headers=headers)).status == 202


@pytest.mark.parametrize("host", ["localhost", "localhost:8025", "127.0.0.1:1", "[::1]:8025", "[::1]"])
@pytest.mark.asyncio(loop_scope="module")
async def test_this_machine_has_many_names(host, shared):
    assert (await shared.get("/api/jobs", headers={"Host": host})).status == 200


async def test_a_signature_may_open_a_route_instead_of_a_key(monkeypatch):
    router = APIRouter()

    async def report(request: Request) -> dict[str, str]:
        return {"from": caller_of(request).name}

    async def report_hot(scope, receive, send, caller):
        return await reply(send, 200, codec.encode({"from": caller.name}))

    router.add_api_route("/reports/{provider}", report, methods=["POST"])
    hot = HotRoute("POST", "/hot", report_hot, "", "Report", None, dict[str, str], status=200)
    signed = (("POST", "/reports/{provider}"), ("POST", "/hot"))
    monkeypatch.setattr(app, "OWN", (lambda _: Routes(hot=(hot,), routers=(router,), signed=signed),))
    monkeypatch.setattr("ulak.http.access.Access.check_start", lambda *_: None)
    async with serving(**KEYS) as served:
        for path in ("/reports/twilio", "/hot"):
            answer = await served.post(path, headers={"via": "a proxy"})
            assert (answer.status, answer.body) == (200, {"from": "a signed request"})
        assert (await served.get("/reports/twilio")).status == 401


async def test_a_door_that_stops_does_not_complain_of_keys_that_a_closed_store_keeps(monkeypatch):
    monkeypatch.setattr(app, "KEYS_PAUSE_SECONDS", 0.001)
    async with Ulak(settings=settings_for()) as ulak:
        door = app.build_app(ulak)
        with capture_logs() as logs:
            async with door.life():
                (watch,) = [task for task in asyncio.all_tasks() if task.get_name() == "ulak-keys"]
                door.guard.stopping = True
                await ulak.close()
                await asyncio.wait_for(asyncio.wait({watch}), 30)
    assert [line for line in logs if line["event"] == "keys_not_read"] == []


async def test_the_watch_over_keys_outlives_an_error_that_nobody_thought_of(monkeypatch):
    monkeypatch.setattr(app, "KEYS_PAUSE_SECONDS", 0.001)
    async with Ulak(settings=settings_for()) as ulak:
        door, looked = app.build_app(ulak), asyncio.Semaphore(0)
        with capture_logs() as logs:
            async with door.life():

                async def load(_):
                    looked.release()
                    raise KeyError("a column that is not there")

                monkeypatch.setattr(door.ring, "load", load)
                for _ in range(2):
                    await asyncio.wait_for(looked.acquire(), 30)
    assert "keys_not_read" in {line["event"] for line in logs}
