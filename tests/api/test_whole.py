"""A whole answer in one write: the bytes of uvicorn's own two, and uvicorn's own way where it is not that simple."""

from __future__ import annotations

import asyncio
import logging

import pytest
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.api.serving import serving
from ulak.errors import Invalid
from ulak.http.hot_routes import read_body, reply

RETRY = [(b"content-type", b"application/json"), (b"retry-after", b"1")]


class Wire(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data) -> None:
        self.writes.append(bytes(data))

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed


def make_cycle(*, method="POST", keep_alive=True, access_log=False) -> RequestResponseCycle:
    wire, log = Wire(), logging.getLogger("test")
    return RequestResponseCycle(
        scope={
            "type": "http",
            "method": method,
            "client": None,
            "path": "/",
            "query_string": b"",
            "http_version": "1.1",
        },
        transport=wire,
        flow=FlowControl(wire),
        logger=log,
        access_logger=log,
        access_log=access_log,
        default_headers=[(b"date", b"Mon, 15 Jan 2024 10:30:00 GMT")],
        message_event=asyncio.Event(),
        expect_100_continue=False,
        keep_alive=keep_alive,
        on_response=lambda: wire.writes.append(b"|"),
    )


@pytest.mark.parametrize("keep_alive", [True, False])
@pytest.mark.parametrize(("status", "body", "headers"), [(202, b'{"id":"1"}', RETRY[:1]), (429, b"{}", RETRY)])
async def test_a_whole_answer_has_the_bytes_of_one_in_two_parts(status, body, headers, keep_alive):
    whole, parts = make_cycle(keep_alive=keep_alive), make_cycle(keep_alive=keep_alive)
    assert await reply(whole.send, status, body, headers) == status

    async def send(message):  # whose it is can't be seen from outside
        await parts.send(message)

    assert await reply(send, status, body, headers) == status
    assert (len(whole.transport.writes), len(parts.transport.writes)) == (2, 3)  # with the mark of the end
    assert b"".join(whole.transport.writes) == b"".join(parts.transport.writes)
    assert whole.transport.closed == parts.transport.closed == (not keep_alive)
    assert whole.response_complete
    assert whole.message_event.is_set()


@pytest.mark.parametrize("unlike", [{"method": "HEAD"}, {"access_log": True}])
async def test_what_uvicorn_leaves_out_or_logs_goes_its_own_way(unlike, caplog):
    cycle = make_cycle(**unlike)
    with caplog.at_level(logging.INFO):
        await reply(cycle.send, 200, b"{}")
    answer = b"".join(cycle.transport.writes)
    assert answer.endswith(b"\r\n\r\n|" if "method" in unlike else b"\r\n\r\n{}|")
    assert len(caplog.records) == (1 if "access_log" in unlike else 0)


async def test_a_reader_that_is_too_slow_is_waited_for():
    cycle = make_cycle()
    cycle.flow.pause_writing()
    answering = asyncio.ensure_future(reply(cycle.send, 202, b"{}"))
    await asyncio.sleep(0)
    assert cycle.transport.writes == []
    cycle.flow.resume_writing()
    assert await answering == 202
    assert b"".join(cycle.transport.writes).endswith(b"{}|")


async def test_nothing_is_written_to_who_has_gone():
    cycle = make_cycle()
    cycle.disconnected = True
    assert await reply(cycle.send, 202, b"{}") == 202
    assert cycle.transport.writes == []


async def test_a_body_that_came_with_its_head_is_taken_once_and_nobody_is_asked():
    cycle = make_cycle()
    cycle.body, cycle.more_body = bytearray(b"{}"), False
    with pytest.raises(StopIteration, match=r"b'\{\}'"):  # it does not wait, not even for the loop
        read_body(cycle.receive).send(None)
    assert cycle.body == b""
    assert cycle.transport.writes == []


async def test_a_body_that_is_under_way_is_waited_for():
    cycle = make_cycle()
    cycle.body += b'{"a"'
    cycle.message_event.set()
    reading = asyncio.ensure_future(read_body(cycle.receive))
    await asyncio.sleep(0)
    assert not reading.done()
    cycle.body += b":1}"
    cycle.more_body = False
    cycle.message_event.set()
    assert await reading == b'{"a":1}'


async def test_a_client_that_asks_whether_to_go_on_is_answered_even_if_it_did_not_wait():
    cycle = make_cycle()
    cycle.body, cycle.more_body, cycle.waiting_for_100_continue = bytearray(b"{}"), False, True
    cycle.message_event.set()
    assert await read_body(cycle.receive) == b"{}"
    assert cycle.transport.writes == [b"HTTP/1.1 100 Continue\r\n\r\n"]


async def test_a_body_whose_sender_has_gone_is_refused():
    cycle = make_cycle()
    cycle.body, cycle.more_body, cycle.disconnected = bytearray(b"{}"), False, True
    with pytest.raises(Invalid, match="closed before"):
        await read_body(cycle.receive)


async def test_requests_sent_together_are_answered_in_order():
    async with serving(work=False) as served:
        host, port = served.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        bodies = [b'{"kind":"mail"}', b'{"kind":7}', b'{"kind":"mail"}']
        head = b"POST /api/jobs HTTP/1.1\r\nhost: localhost\r\ncontent-length: %d\r\n%b\r\n%b"
        last = [b"", b"", b"connection: close\r\n"]
        writer.write(b"".join(head % (len(body), end, body) for body, end in zip(bodies, last, strict=True)))
        answers = (await reader.read()).split(b"HTTP/1.1 ")[1:]
        assert [answer[:3] for answer in answers] == [b"202", b"400", b"202"]
        assert b"connection: close" in answers[-1]
        writer.close()
        await writer.wait_closed()
