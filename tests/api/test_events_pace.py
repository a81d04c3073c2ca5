"""How often a follower of the event stream looks: what many commits bring is read and sent together."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.api.serving import serving
from ulak.http.routes.events import PACE_SECONDS, _as_event, _as_events, _chunks
from ulak.spine.event import BLOCKS_PER_READ, EventRecord, read_on
from ulak.spine.loops.tail import TailPage


class CountingClock:
    def __init__(self):
        self.pauses = []

    def monotonic(self):
        return 0.0

    async def wait(self, _, seconds):
        self.pauses.append(seconds)
        return False


def page(number, *, more=False):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return TailPage(number, None, [EventRecord(seq, at, "accepted", 1, "mail", None) for seq in range(number)], more)


@pytest.mark.parametrize(
    ("pages", "pauses"),
    [
        ([page(1)], 1),
        ([page(900)], 1),  # many events, and nothing behind them: no second look at once
        ([page(900, more=True)], 0),  # a follower that is behind catches up without a pause
        ([page(0)], 0),  # it has waited for news already
    ],
)
async def test_a_follower_pauses_when_it_has_read_everything(pages, pauses):
    async def come():
        for one in pages:
            yield one

    clock = CountingClock()
    assert len([chunk async for chunk in _chunks(come(), clock)]) == sum(bool(one.events) for one in pages)
    assert clock.pauses == [PACE_SECONDS] * pauses


async def test_a_page_says_whether_more_may_be_left():
    async with serving(work=False) as served:
        for _ in range(5):
            await served.enqueue("mail", {})
        read = served.ulak.store.read
        _, events, more = await read(read_on, 0, 100)
        assert (len(events), more) == (5, False)
        assert (await read(read_on, 0, 3))[2]
        for _ in range(BLOCKS_PER_READ):
            await served.enqueue("mail", {})
        assert (await read(read_on, 0, 1000))[2]


def test_events_that_agree_are_written_as_each_alone_would_be():
    first, second = (datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in (1, 2))
    data = {"note": "100 %d", "secret": "x"}
    rows = [
        *((first, "accepted", job, "mail", None) for job in (7, 8, 0, 0, 9)),
        *((second, "accepted", job, "mail", None) for job in (7, 8)),
        *((second, "50 %s", job, "ş%d", data) for job in (1, 2, 3)),
        *((second, "done", job, "mail", 4) for job in (1, 2)),
        (second, "done", 3, "mail", ["+905551112233", 5]),
    ]
    events = [EventRecord(seq, *row) for seq, row in enumerate(rows, 1)]
    assert _as_events(events) == b"".join(map(_as_event, events))
    assert _as_events([]) == b""
