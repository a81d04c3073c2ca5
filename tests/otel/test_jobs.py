"""A trace goes with a job: from whoever enqueues it, through retries, timers and what follows, to every attempt."""

from __future__ import annotations

import threading

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from tests.otel.conftest import id_of, parent_of, trace_of
from ulak import BlockingUlak, Dead, Done, NewJob, Permanent, Retry, Snooze, Transient
from ulak.channels.message import NewMessage
from ulak.spine.query import Queries
from ulak.spine.trace import trace_id_of
from ulak.spine.units.enqueue import enqueue_owed
from ulak.testing import advance, drain


async def nothing(job):
    return None


async def test_a_job_that_is_enqueued_inside_a_span_continues_it(make, spans):
    ulak = make()
    ulak.handles("mail")(nothing)
    async with ulak:
        with spans.provider.get_tracer("app").start_as_current_span("checkout") as checkout:
            identifier = await ulak.enqueue("mail", {"to": "ada@example.org"})
        await drain(ulak)
        record = await ulak.jobs.get(identifier)
    created, attempt = spans.one("mail", SpanKind.PRODUCER), spans.one("mail")
    assert parent_of(created) == f"{checkout.get_span_context().span_id:016x}"
    assert parent_of(attempt) == id_of(created)
    assert trace_of(created) == trace_of(attempt) == trace_id_of(record.trace)
    assert dict(attempt.attributes) == {
        "messaging.system": "ulak",
        "messaging.destination.name": "mail",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.message.id": str(identifier),
        "ulak.job.attempt": 1,
        "ulak.job.outcome": "done",
    }


async def test_without_a_span_around_it_a_job_begins_a_trace_of_its_own(make, spans):
    ulak = make()
    ulak.handles("mail")(nothing)
    async with ulak:
        await ulak.enqueue("mail")
        await ulak.enqueue("mail")
        await drain(ulak)
    assert [parent_of(span) for span in spans.of("mail", SpanKind.PRODUCER)] == [None, None]
    assert len({trace_of(span) for span in spans.of("mail")}) == 2


async def test_every_attempt_is_a_span_of_the_same_trace_and_a_failed_one_an_error(make, spans):
    answers = [Transient("ada@example.org is busy", code="SMTP_450"), Retry(1.0), Snooze(1.0), Permanent("no"), None]
    ulak = make()

    @ulak.handles("mail")
    async def mail(job):
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with ulak:
        identifier = await ulak.enqueue("mail", delay_seconds=86_400)
        await advance(ulak, 86_400)
        for _ in range(3):
            await advance(ulak, 60)
        assert await ulak.jobs.redrive([identifier]) == [identifier]
        await drain(ulak)
    attempts = spans.of("mail")
    assert {trace_of(span) for span in attempts} == {trace_of(spans.one("mail", SpanKind.PRODUCER))}
    assert [span.attributes["ulak.job.outcome"] for span in attempts] == [
        "retried",
        "retried",
        "snoozed",
        "dead",
        "done",
    ]
    said = [(span.status.status_code is StatusCode.ERROR, span.attributes.get("error.type")) for span in attempts]
    assert said == [(True, "SMTP_450"), (True, "retried"), (False, None), (True, "permanent"), (False, None)]
    assert "ada@" not in "".join(span.to_json() for span in attempts)


async def test_what_a_job_leads_to_stays_in_its_trace(make, spans):
    ulak = make()
    ulak.handles("after")(nothing)
    ulak.handles("owed")(nothing)
    ulak.handles("nested")(nothing)

    @ulak.handles("mail")
    async def mail(job):
        with spans.provider.get_tracer("app").start_as_current_span("render"):
            await ulak.enqueue("nested", delay_seconds=5)
        return Done(unit=lambda tx: enqueue_owed(tx, [NewJob("owed")]))

    async with ulak:
        await ulak.enqueue("mail", continuation="after")
        await drain(ulak)
        await advance(ulak, 5)
    mail_span, render = spans.one("mail"), spans.one("render", SpanKind.INTERNAL)
    assert parent_of(render) == id_of(mail_span)
    assert parent_of(spans.one("nested", SpanKind.PRODUCER)) == id_of(render)
    followers = [spans.one(name) for name in ("after", "owed", "nested")]
    assert {trace_of(span) for span in followers} == {trace_of(mail_span)}


async def test_a_dead_letters_continuation_stays_in_its_trace(make, spans):
    ulak = make()
    ulak.handles("after")(nothing)

    @ulak.handles("mail")
    async def mail(job):
        return Dead("no mailbox")

    async with ulak:
        await ulak.enqueue("mail", continuation="after")
        await drain(ulak)
    assert trace_of(spans.one("after")) == trace_of(spans.one("mail"))


async def test_a_handler_on_a_thread_finds_its_span_as_the_current_one(make, spans):
    ulak = make()
    seen = []

    @ulak.handles("mail", lane="thread")
    def mail(job):
        found = trace.get_current_span().get_span_context()
        seen.append((threading.current_thread(), f"{found.span_id:016x}", job.trace.split("-")[2]))

    async with ulak:
        await ulak.enqueue("mail")
        await drain(ulak)
    ((thread, current, of_job),) = seen
    assert thread is not threading.main_thread()
    assert current == of_job == id_of(spans.one("mail"))


async def test_jobs_of_one_call_share_the_span_of_their_kind(make, spans):
    ulak = make()
    ulak.handles("mail")(nothing)
    ulak.handles("sms")(nothing)
    async with ulak:
        await ulak.enqueue_many([NewJob("mail"), NewJob("sms"), NewJob("mail")])
        await drain(ulak)
    created = spans.one("mail", SpanKind.PRODUCER)
    assert created.attributes["messaging.batch.message_count"] == 2
    assert {parent_of(span) for span in spans.of("mail")} == {id_of(created)}
    assert parent_of(spans.one("sms")) == id_of(spans.one("sms", SpanKind.PRODUCER))


async def test_a_unit_of_the_callers_own_posts_and_enqueues_in_the_callers_trace(make, spans):
    ulak = make()
    ulak.handles("mail")(nothing)

    def unit(tx):
        enqueue_owed(tx, [NewJob("mail")])
        ulak.post(tx, [NewMessage("IN_APP", "ada", "hello")])

    async with ulak:
        with spans.provider.get_tracer("app").start_as_current_span("order") as order:
            await ulak.write(unit)
        await ulak.write(lambda tx: enqueue_owed(tx, [NewJob("mail")]))
        await drain(ulak)
    inside, outside = spans.of("mail")
    assert parent_of(inside) == parent_of(spans.one("notify.in_app")) == f"{order.get_span_context().span_id:016x}"
    assert parent_of(outside) is None


def test_a_blocking_client_continues_the_span_of_the_thread_that_calls_it(spans):
    with BlockingUlak("memory:") as blocking:
        spans.follow(blocking.inner)
        with spans.provider.get_tracer("app").start_as_current_span("script") as script:
            identifier = blocking.enqueue("mail")
        kept = blocking.get(identifier).trace
    assert parent_of(spans.one("mail", SpanKind.PRODUCER)) == f"{script.get_span_context().span_id:016x}"
    assert trace_id_of(kept) == f"{script.get_span_context().trace_id:032x}"


async def test_where_traces_are_off_nothing_is_kept_of_one(make, spans):
    ulak = make(traces=False)
    seen = []

    @ulak.handles("mail")
    async def mail(job):
        seen.append(job.trace)

    async with ulak:
        with spans.provider.get_tracer("app").start_as_current_span("checkout"):
            identifier = await ulak.enqueue("mail")
        await drain(ulak)
        row = await ulak.store.read(lambda tx: tx.row(Queries("ulak.spine").read_past, id=identifier))
    assert (row[-1], seen, spans.of("mail")) == (None, [None], [])
