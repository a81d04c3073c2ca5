"""The traceparent of a request goes with the work that it makes, in every room, and out with its webhooks."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from opentelemetry.trace import SpanKind

from tests.actions.conftest import World
from tests.api.serving import serving
from tests.changes.conftest import opened, served_over
from tests.compute.rooms import write_scripts
from tests.dispatch.conftest import request, settle_in
from tests.otel.conftest import PARENT_ID, TRACE_ID, TRACEPARENT, id_of, parent_of, trace_of
from ulak.testing import advance, drain

LOCAL = {"channels.webhook.allow": "127.0.0.0/8"}
TRACED = {"traceparent": TRACEPARENT, "tracestate": "vendor=1"}


@pytest.fixture
async def sink(receiver):
    """Fails the first time for `/once`, and says yes to everything else."""
    made = await receiver()

    async def answer(asked):
        first = sum(one.path == asked.path for one in made.requests) == 1
        return web.Response(status=503 if asked.path == "/once" and first else 200)

    made.answer = answer
    return made


async def received(sink, number: int) -> list[dict[str, str]]:
    """The headers of what has arrived, with names in small letters."""
    async with asyncio.timeout(20):
        while len(sink.requests) < number:
            await asyncio.sleep(0.01)
    return [{name.lower(): value for name, value in one.headers.items()} for one in sink.requests]


def webhook(url: str, **fields) -> dict:
    return {"notificationType": "WEBHOOK", "recipient": url, "body": "hello", **fields}


async def test_a_notification_carries_its_trace_from_the_request_to_the_webhook(address, spans, sink):
    async with serving(spans.follow, store=address, **LOCAL) as served:
        answer = await served.post("/api/notifications", webhook(f"{sink.url}/ok"), headers=TRACED)
        (arrived,) = await received(sink, 1)
        job = await served.settled(answer.body["id"])
    created, attempt = spans.one("notify.webhook", SpanKind.PRODUCER), spans.one("notify.webhook")
    assert (trace_of(created), parent_of(created)) == (TRACE_ID, PARENT_ID)
    assert parent_of(attempt) == id_of(created)
    assert arrived["traceparent"] == f"00-{TRACE_ID}-{id_of(attempt)}-01"
    assert arrived["tracestate"] == "vendor=1"
    assert job["traceId"] == TRACE_ID


async def test_each_delivery_of_a_retried_webhook_carries_its_own_span(make, spans, sink):
    async with make(channels={"webhook": {"allow": ("127.0.0.0/8",)}}) as ulak:
        await ulak.notify.send("WEBHOOK", f"{sink.url}/once", "hello")
        await drain(ulak)
        await advance(ulak, 60)
        arrived = await received(sink, 2)
    sent = [one["traceparent"].split("-")[1:3] for one in arrived]
    assert sent == [[trace_of(span), id_of(span)] for span in spans.of("notify.webhook")]
    assert len({trace for trace, _ in sent}) == 1


async def test_headers_of_the_recipients_own_give_way(address, spans, sink):
    meta = {"headers": {"Traceparent": "00-11111111111111111111111111111111-2222222222222222-01", "X-Team": "ops"}}
    async with serving(spans.follow, store=address, **LOCAL) as served:
        await served.post("/api/notifications", webhook(f"{sink.url}/ok", targetMeta=meta), headers=TRACED)
        (arrived,) = await received(sink, 1)
    assert (arrived["traceparent"].split("-")[1], arrived["x-team"]) == (TRACE_ID, "ops")


@pytest.mark.parametrize(
    "given",
    ["", "nonsense", f"ff-{TRACE_ID}-{PARENT_ID}-01", f"00-{'0' * 32}-{PARENT_ID}-01", f"00-{TRACE_ID}-{'0' * 16}-01",
     f"00-{TRACE_ID.upper()}-{PARENT_ID}-01", f"00-{TRACE_ID}-{PARENT_ID}-01-more"],
)  # fmt: skip
async def test_a_traceparent_that_is_not_sound_is_left_aside(spans, given):
    async with serving(spans.follow, work=False) as served:
        answer = await served.post("/api/jobs", {"kind": "mail"}, headers={"traceparent": given})
    assert answer.status == 202, answer.text
    created = spans.one("mail", SpanKind.PRODUCER)
    assert (created.parent, trace_of(created) == TRACE_ID) == (None, False)


async def test_a_long_tracestate_is_left_behind(spans):
    async with serving(spans.follow, work=False) as served:
        long = ",".join(f"vendor{number}={'x' * 200}" for number in range(3))
        job = await served.post("/api/jobs", {"kind": "mail"}, headers={"traceparent": TRACEPARENT, "tracestate": long})
        kept = (await served.ulak.jobs.get(int(job.body["id"]))).trace
    assert kept == f"00-{TRACE_ID}-{id_of(spans.one('mail', SpanKind.PRODUCER))}-01"


async def test_two_traceparents_are_none(spans):
    async with serving(spans.follow, work=False) as served:
        twice = [("traceparent", TRACEPARENT), ("traceparent", TRACEPARENT)]
        async with served.session.post(f"{served.address}/api/jobs", json={"kind": "mail"}, headers=twice) as answer:
            assert answer.status == 202
    assert spans.one("mail", SpanKind.PRODUCER).parent is None


async def test_a_request_that_is_not_sampled_is_passed_on_as_such(spans, sink):
    async with serving(spans.follow, **LOCAL) as served:
        unsampled = {"traceparent": TRACEPARENT[:-1] + "0"}
        await served.post("/api/notifications", webhook(f"{sink.url}/ok"), headers=unsampled)
        (arrived,) = await received(sink, 1)
    assert arrived["traceparent"].split("-")[1::2] == [TRACE_ID, "00"]
    assert spans.of("notify.webhook") == []


async def test_every_item_of_a_batch_belongs_to_its_requests_trace(address, spans):
    items = [{"notificationType": "IN_APP", "recipient": "ada", "body": str(number)} for number in range(2)]
    async with serving(spans.follow, store=address) as served:
        await served.post("/api/notifications/batch", items, headers=TRACED)
        job = await served.enqueue("mail", delaySeconds=86_400)
        shown = (await served.get(f"/api/jobs/{job}")).body["traceId"]
    created = spans.of("notify.in_app", SpanKind.PRODUCER)
    assert [(trace_of(span), parent_of(span)) for span in created] == [(TRACE_ID, PARENT_ID)] * 2
    assert shown not in (None, TRACE_ID)  # that request came without one


async def test_the_steps_of_a_plan_are_in_the_trace_of_the_request(address, spans, sink):
    async with serving(spans.follow, store=address, **LOCAL) as served:
        world = World(served.ulak)
        step = {"channel_type": "webhook"}
        plan = await world.ready(step, {**step, "delay_seconds": 0.05}, channels=(("webhook", f"{sink.url}/ok"),))
        asked = {"data": {"action_plan_id": plan, "evaluation_key": "k-1"}}
        answer = await served.post("/api/actions/requests", asked, headers=TRACED)
        assert answer.status == 202, answer.text
        arrived = await received(sink, 2)
    created, steps = spans.one("actions.request", SpanKind.PRODUCER), spans.of("actions.webhook")
    assert (trace_of(created), parent_of(created)) == (TRACE_ID, PARENT_ID)
    assert {parent_of(span) for span in steps} == {id_of(created)}
    sent = [one["traceparent"].split("-")[2] for one in arrived]
    assert sent == [id_of(span) for span in steps if id_of(span) in sent]


async def test_a_task_is_in_the_trace_of_its_request(spans):
    async with serving(spans.follow) as served:
        await settle_in(served.ulak, 1)
        answer = await served.post("/tasks", request(), headers=TRACED)
        assert answer.status == 201, answer.text
        (timer,) = (await served.get("/api/jobs?kind=dispatch.expire")).body["jobs"]
        assert (await served.get(f"/api/jobs/{timer['id']}")).body["traceId"] == TRACE_ID
    assert parent_of(spans.one("dispatch.task", SpanKind.PRODUCER)) == PARENT_ID


async def test_offers_deadlines_and_messages_stay_in_the_trace_of_their_task(make, spans):
    async with make() as ulak:
        await settle_in(ulak, 2)
        await ulak.dispatch.open(request(deadlineSeconds=30))
        await drain(ulak)
        await advance(ulak, 30)
        await advance(ulak, 30)
    created = spans.one("dispatch.task", SpanKind.PRODUCER)
    deadlines, messages = spans.of("dispatch.expire"), spans.of("notify.in_app")
    assert (len(deadlines), len(messages)) == (2, 3)  # two offers, and the requester is told that nobody comes
    assert {parent_of(span) for span in [*deadlines, *messages]} == {id_of(created)}


async def test_a_compute_task_runs_in_the_trace_of_its_request(spans, tmp_path):
    root = write_scripts(tmp_path / "scripts")
    async with serving(spans.follow, **{"compute.script_root": root, "compute.cpu_workers": 1}) as served:
        served.key = await served.make_key("compute")
        task = {"script_path": "double.py", "params": {"value": 4}, "task_type": "cpu_bound"}
        answer = await served.post("/api/compute/tasks", task, headers=TRACED)
        await served.get(f"/api/compute/tasks/{answer.body['task_id']}/result?wait=60")
    assert {trace_of(span) for span in spans.of("compute.run.cpu")} == {TRACE_ID}


async def test_a_sync_and_the_webhook_of_a_watch_are_in_the_trace_of_its_request(
    address, tmp_path, clock, spans, sink, monkeypatch
):
    monkeypatch.setattr("ulak.app._make_tracer", lambda _: spans.tracer)
    async with opened(address, tmp_path, clock, channels__webhook__allow=("127.0.0.0/8",)) as desk:
        await desk.publish(range(5))
        await desk.room.watch("einvoice", [], webhook=f"{sink.url}/ok")
        desk.lay_simple(range(7))
        clock.advance(60)
        async with served_over(desk) as door:
            answer = await door.post("/api/changes/gib/sync", headers=TRACED)
            assert answer.status == 202, answer.text
            (arrived,) = await received(sink, 1)
    assert trace_of(spans.of("changes.sync")[-1]) == TRACE_ID
    assert arrived["traceparent"].split("-")[1] == TRACE_ID
