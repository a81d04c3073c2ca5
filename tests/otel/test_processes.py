"""Traces of real processes: what a killed one had accepted, what a move takes along, and what is there without them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.flow.conftest import build
from tests.flow.test_move import _log_as_it_is, move  # noqa: F401 - a fixture
from tests.otel.conftest import TRACE_ID, TRACEPARENT, trace_of
from tests.outside.served import ROOT, served
from tests.postgres_server import fresh_database
from ulak import Ulak
from ulak.errors import Misconfigured
from ulak.settings import Settings
from ulak.testing import drain

TRACES = {"telemetry.traces": "true"}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def lasting(request, tmp_path):
    """The address of a store that outlives a process."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/ulak.db"
    else:
        with fresh_database() as address:
            yield address


async def test_what_a_killed_process_had_accepted_is_delivered_in_its_trace(lasting, tmp_path, receiver, monkeypatch):
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "console")
    sink = await receiver()
    async with served(lasting, tmp_path, **TRACES) as first:
        soon = (datetime.now(UTC) + timedelta(seconds=2)).isoformat()
        message = {"notificationType": "WEBHOOK", "recipient": f"{sink.url}/status/200", "sendAt": soon}
        status, _, _ = await first.post({"traceparent": TRACEPARENT}, **message)
        assert status == 202
        first.process.kill()
        first.process.wait()
        assert sink.requests == []
    async with served(lasting, tmp_path, **TRACES) as second:
        async with asyncio.timeout(20):
            while not sink.requests:
                await asyncio.sleep(0.02)
        second.process.terminate()
        await asyncio.to_thread(second.process.wait, 20)
    arrived = {name.lower(): value for name, value in sink.requests[0].headers.items()}["traceparent"]
    assert arrived.split("-")[1] == TRACE_ID
    log = (tmp_path / "serve.log").read_text()  # the SDK of the second process has written its spans there at its end
    assert f'"span_id": "0x{arrived.split("-")[2]}"' in log
    assert '"service.name": "ulak"' in log


@pytest.mark.postgres
async def test_a_move_takes_traces_along(tmp_path, clock, spans):
    address = f"sqlite:///{tmp_path}/ulak.db"
    with fresh_database() as target:
        async with spans.follow(build(address, clock)) as ulak:
            identifier = await ulak.enqueue("mail", delay_seconds=60)
            kept = (await ulak.jobs.get(identifier)).trace
        await move(address, target)
        async with build(target, clock, work=False) as ulak:
            assert (await ulak.jobs.get(identifier)).trace == kept


async def test_a_job_with_a_trace_is_run_and_shown_by_a_process_without_traces(make, spans):
    traced, plain = make(), make(traces=False)
    if traced.address == "memory:":
        pytest.skip("memory: is not kept")
    seen = []

    @plain.handles("mail")
    async def mail(job):
        seen.append(job.trace)

    async with traced:
        identifier = await traced.enqueue("mail")
    async with plain:
        await drain(plain)
        record = await plain.jobs.get(identifier)
    assert (record.status, seen) == ("done", [None])
    assert record.trace is not None


def test_without_the_extra_traces_are_refused_with_the_command_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "ulak.otel", raising=False)
    with pytest.raises(Misconfigured, match=r"pip install 'ulak\[otel\]'"):
        Ulak("memory:", settings=Settings(store="memory:", telemetry={"traces": True}))


def test_nothing_of_opentelemetry_is_imported_where_traces_are_off():
    program = """
import asyncio, json, sys
from ulak import Ulak
async def main():
    ulak = Ulak("memory:")
    @ulak.handles("mail")
    async def mail(job): ...
    async with ulak:
        await ulak.enqueue("mail")
asyncio.run(main())
print(json.dumps([name for name in sys.modules if name.startswith(("opentelemetry", "ulak.otel"))]))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], env={"PYTHONPATH": str(ROOT / "src")}, capture_output=True, check=True
    )
    assert json.loads(ran.stdout.splitlines()[-1]) == []


async def test_a_process_of_the_users_own_is_followed_by_the_provider_that_it_has_set_up(spans, monkeypatch):
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", spans.provider)
    ulak = Ulak("memory:", settings=Settings(store="memory:", telemetry={"traces": True}))

    @ulak.handles("mail")
    async def mail(job): ...

    async with ulak:
        await ulak.enqueue("mail")
        await drain(ulak)
    assert len(trace_of(spans.one("mail"))) == 32
