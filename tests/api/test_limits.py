"""What is too large, too often or too much is refused, and the rest is served."""

from __future__ import annotations

import asyncio
import io
import urllib.error
import urllib.request

import pytest

from tests.api.serving import serving
from ulak.http import app, known_kinds, protocol, server, submissions
from ulak.http.hot_routes import HotRoute, Routes, reply
from ulak.http.protocol import MAX_HEAD_BYTES
from ulak.http.routes.jobs import JobAccepted, JobRequest

SMALL = {"http.max_body_bytes": 2000}


async def chunks(size):
    for _ in range(size // 100):
        yield b" " * 100


@pytest.mark.parametrize("path", ["/api/jobs", "/api/dead/redrive"])
async def test_a_large_body_is_refused(path):
    async with serving(**SMALL) as served:
        answer = await served.post(path, data=b" " * 2001)
        assert (answer.status, answer.body["error"]) == (413, "too_large")


@pytest.mark.parametrize("path", ["/api/jobs", "/api/dead/redrive"])
async def test_a_large_body_that_does_not_say_its_length_is_refused(path):
    async with serving(**SMALL) as served:
        assert (await served.post(path, data=chunks(5000))).status == 413


async def test_a_payload_too_large_for_the_store_is_refused():
    async with serving(work=False, **{"http.max_body_bytes": 10_000_000}) as served:
        large = b'{"kind": "mail", "payload": "%b"}' % (b"y" * 1_048_576)
        answer = await served.post("/api/jobs", data=io.BytesIO(large))
        assert (answer.status, answer.body["error"]) == (413, "too_large")
        assert answer.body["fields"] == [{"field": "payload", "message": "must be at most 1024 KiB"}]


@pytest.mark.parametrize("path", ["/api/jobs", "/api/dead/redrive"])
async def test_a_body_in_pieces_is_read_whole(path):
    async def pieces():
        for byte in b'{"kind": "mail"}':
            yield bytes([byte])

    async with serving(**SMALL) as served:
        answer = await served.post(path, data=pieces(), headers={"content-type": "application/json"})
        assert answer.status in {200, 202}


async def raw(served, head):
    host, port = served.address.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(head)
    await writer.drain()
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_head_that_never_ends_is_cut_off():
    async with serving() as served:
        answer = await raw(served, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * (MAX_HEAD_BYTES + 1))
        assert answer.startswith(b"HTTP/1.1 431 ")
        assert b"head_too_large" in answer


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HT", b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\nGET /"])
async def test_a_head_that_does_not_come_is_not_waited_for(monkeypatch, sent):
    monkeypatch.setattr(protocol, "HEAD_SECONDS", 0.05)
    monkeypatch.setattr(server, "KEEP_ALIVE_SECONDS", 0.05)  # bounds a head whose start came with the last
    async with serving() as served:
        await raw(served, sent)  # returns, because the server hangs up


async def test_a_large_body_is_not_taken_for_a_large_head():
    async with serving() as served:
        assert (await served.post("/api/jobs", {"kind": "mail", "payload": "x" * 2 * MAX_HEAD_BYTES})).status == 202
        assert (await served.get("/api/jobs")).status == 200


async def test_a_single_large_header_is_refused_however_it_arrives():
    async with serving() as served:
        answer = await raw(served, b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: " + b"y" * 100_000 + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("hosts", [b"", b"host: localhost\r\nhost: localhost\r\n"], ids=["none", "two"])
async def test_a_request_has_one_host_and_what_came_along_behind_another_is_not_begun(hosts):
    async with serving(work=False) as served:
        job = (await served.post("/api/jobs", {"kind": "a.b"})).body["id"]
        following = f"POST /api/jobs/{job}/cancel HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
        answer = await raw(served, b"GET /healthz HTTP/1.1\r\n" + hosts + b"\r\n" + following)
        assert (await served.get(f"/api/jobs/{job}")).body["status"] == "ready"
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"error":"invalid"' in answer


async def test_a_client_that_sends_all_before_it_reads_gets_its_413():
    def post(address):
        request = urllib.request.Request(f"{address}/api/notifications", data=b"x" * 20_000_000, method="POST")
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        return refused.value.code, refused.value.read()

    async with serving() as served:
        code, body = await asyncio.to_thread(post, served.address)
        assert code == 413
        assert b"too_large" in body


async def test_a_body_that_trickles_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(protocol, "BODY_LOOK_SECONDS", 0.05)
    head = b"POST /api/notifications HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10000\r\n\r\n"
    async with serving() as served:
        assert (await raw(served, head + b"{")).startswith(b"HTTP/1.1 408 ")


async def send_all(writer, number):
    for _ in range(number // 65_536):
        writer.write(b"x" * 65_536)
        await writer.drain()


async def test_what_follows_a_refused_body_is_bounded(monkeypatch):
    monkeypatch.setattr(protocol, "MAX_DRAINED_BYTES", 100_000)
    head = b"POST /api/notifications HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100000000\r\n\r\n"
    async with serving() as served:
        host, port = served.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(head)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(ConnectionError):
            await send_all(writer, 6_553_600)


async def test_a_wrong_length_is_the_callers_fault():
    async with serving() as served:
        head = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: abc\r\n\r\n"
        answer = await raw(served, head)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"error":"invalid"' in answer  # in the shape of every refusal


async def test_a_key_that_asks_too_often_is_told_when_to_come_back():
    async with serving(**{"http.rate_per_key_per_second": 2}) as served:
        one, other = await served.make_key("jobs"), await served.make_key("jobs")
        statuses = [(await served.get("/api/jobs", key=one)).status for _ in range(4)]
        assert statuses[:2] == [200, 200]
        assert 429 in statuses
        refused = await served.get("/api/jobs", key=one)
        assert refused.status == 429
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await served.get("/api/jobs", key=other)).status == 200
        assert (await served.get("/healthz")).status == 200


@pytest.fixture
def slow(monkeypatch):
    """A route that answers when it is told to."""
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def wait(scope, receive, send, caller):
        begun.set()
        await go_on.wait()
        return await reply(send, 200, b"{}")

    route = HotRoute("POST", "/slow", wait, "jobs", "Waits", JobRequest, JobAccepted)
    monkeypatch.setattr(app, "OWN", (*app.OWN, lambda _: Routes(hot=(route,))))
    return begun, go_on


async def test_beyond_the_bound_requests_are_sent_away(slow):
    begun, go_on = slow
    async with serving(**{"http.max_concurrent_requests": 1}) as served:
        first = asyncio.ensure_future(served.post("/slow", {}))
        await begun.wait()
        for path in ("/api/jobs", "/api/compute/tasks"):
            refused = await served.post(path, {"kind": "mail"})
            assert (refused.status, refused.headers["Retry-After"]) == (503, "1")
        assert (await served.get("/healthz")).status == 200
        go_on.set()
        assert (await first).status == 200
        assert (await served.post("/api/jobs", {"kind": "mail"})).status == 202


async def test_who_waits_for_capacity_does_not_keep_out_who_looks_why_or_makes_some(slow):
    begun, go_on = slow
    async with serving(work=False, **{"http.max_concurrent_requests": 1}) as served:
        job = await served.enqueue()
        waiting = asyncio.ensure_future(served.post("/slow", {}))
        await begun.wait()
        for path in ("/metrics", "/api/jobs", "/api/dead", "/api/breakers", "/api/db"):
            assert (await served.get(path)).status == 200
        assert (await served.post(f"/api/jobs/{job}/cancel")).status == 200
        go_on.set()
        await waiting


async def test_who_hangs_up_while_waiting_for_capacity_is_not_accepted_and_leaves_the_line(monkeypatch):
    def prepare(ulak):
        @ulak.handles("mail", capacity=1)
        async def mail(job): ...

    monkeypatch.setattr(submissions, "LOOK_SECONDS", 0.001)
    async with serving(prepare, work=False, **{"http.max_concurrent_requests": 2}) as served:
        first = await served.enqueue("mail")
        hasty = [asyncio.ensure_future(served.post("/api/jobs", {"kind": "mail", "key": key})) for key in "ab"]
        line = served.ulak.loops.gate._waiting["mail"]
        async with asyncio.timeout(10):
            while len(line) < 2:
                await asyncio.sleep(0)
            for one in hasty:
                one.cancel()
            while line:
                await asyncio.sleep(0)
        assert (await served.get("/metrics")).text.count('status="499"') == 1
        retry = asyncio.ensure_future(served.post("/api/jobs", {"kind": "mail", "key": "again"}))
        await served.post(f"/api/jobs/{first}/cancel")
        assert (await retry).status == 202
        (left,) = (await served.get("/api/jobs?status=ready")).body["jobs"]
        assert left["key"] == "again"


async def test_while_stopping_work_is_refused_and_probes_tell_it(slow):
    begun, go_on = slow
    async with serving() as served:
        first = asyncio.ensure_future(served.post("/slow", {}))
        await begun.wait()
        served.door.guard.stopping = True
        for path in ("/api/jobs", "/slow"):
            assert (await served.post(path, {"kind": "mail"})).status == 503
        assert (await served.get("/healthz")).status == 200
        assert (await served.get("/readyz")).status == 503
        assert (await served.get("/metrics")).status == 200
        go_on.set()
        assert (await first).status == 200


async def test_a_stopped_ulak_answers_503():
    async with serving() as served:
        await served.ulak.close()
        assert (await served.get("/api/jobs")).status == 503
        assert (await served.post("/api/jobs", {"kind": "mail"})).status == 503
        assert (await served.get("/readyz")).status == 503


async def test_a_full_kind_is_refused_with_429():
    def prepare(ulak):
        @ulak.handles("mail", capacity=1, admission="reject")
        async def mail(job): ...

    async with serving(prepare, work=False) as served:
        await served.enqueue("mail", delaySeconds=60)  # what is put off takes no place among the active
        await served.enqueue("mail")
        refused = await served.post("/api/jobs", {"kind": "mail"})
        assert (refused.status, refused.headers["Retry-After"]) == (429, "30")  # nothing has come free lately


async def test_kinds_are_bounded_for_they_cost_memory_metrics_and_rows_that_stay(monkeypatch):
    def prepare(ulak):
        @ulak.handles("mail.declared")
        async def mail(job): ...

    monkeypatch.setattr(known_kinds, "MAX_KINDS", 3)
    async with serving(prepare, work=False) as served:
        await served.ulak.enqueue("mail.before")
        await served.enqueue("mail.a")
        assert (await served.post("/api/jobs", {"kind": "mail.b", "dueAt": "9999-01-01T00:00:00Z"})).status == 400
        await served.enqueue("mail.b", continuation="mail.a")  # what was refused has used up no place
        for body in ({"kind": "mail.c"}, {"kind": "mail.a", "continuation": "mail.c"}):
            refused = await served.post("/api/jobs", body)
            assert (refused.status, refused.body["fields"][0]["field"]) == (400, list(body)[-1])
        for known in ("mail.before", "mail.a", "mail.b", "mail.declared"):
            await served.enqueue(known)
        assert set(await served.ulak.jobs.tally()) == {"mail.before", "mail.a", "mail.b", "mail.declared"}


async def test_readiness_ends_while_the_disk_is_short():
    async with serving() as served:
        served.ulak.store.ballast.shortage = lambda: "only 1 MB is free"
        await served.ulak.store.maintain()
        assert (await served.get("/readyz")).status == 503
        assert (await served.post("/api/jobs", {"kind": "mail"})).status == 503
        assert (await served.get("/healthz")).status == 200


async def test_health_ends_when_the_store_is_lost():
    async with serving() as served:
        served.ulak.loops.lost(RuntimeError("a sync failed"))
        assert (await served.get("/healthz")).status == 503
        assert (await served.get("/readyz")).status == 503
