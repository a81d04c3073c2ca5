from __future__ import annotations

from typing import NamedTuple

import msgspec

from ulak.spine.event import events_for, read_events, to_block


class Row(NamedTuple):
    id: int
    kind: str
    attempt: int


class Log:
    """A transaction that has these blocks to read: (first number, body)."""

    def __init__(self, *blocks: tuple[int, bytes]) -> None:
        self._rows = [(first, 0, 1_800_000_000_000, body) for first, body in blocks]

    def rows(self, query, **parameters):
        return self._rows


def told_of(log: Log, after: int = 0, limit: int = 100) -> list[tuple[int, str, int, str, object]]:
    return [(one.seq, one.name, one.job, one.kind, one.data) for one in read_events(log, after, limit)]


def test_jobs_that_agree_share_an_entry_and_keep_their_order_and_numbers():
    rows = [Row(1, "a", 1), Row(2, "a", 1), Row(3, "b", 1), Row(4, "a", 2), Row(5, "a", 2)]
    events = events_for("started", rows, "attempt")
    assert events == [("started", [1, 2], "a", 1), ("started", [3], "b", 1), ("started", [4, 5], "a", 2)]
    count, body = to_block(events)
    assert count == 5
    assert told_of(Log((10, body))) == [
        (10, "started", 1, "a", 1),
        (11, "started", 2, "a", 1),
        (12, "started", 3, "b", 1),
        (13, "started", 4, "a", 2),
        (14, "started", 5, "a", 2),
    ]


def test_a_cursor_in_the_midst_of_an_entry_reads_on_behind_it():
    _, body = to_block(events_for("done", [Row(1, "a", 1), Row(2, "a", 1), Row(3, "a", 1)], "attempt"))
    assert told_of(Log((10, body)), after=11) == [(12, "done", 3, "a", 1)]
    assert told_of(Log((10, body)), after=9, limit=2) == [(10, "done", 1, "a", 1), (11, "done", 2, "a", 1)]


def test_a_block_of_an_early_version_is_read_as_it_was_meant():
    body = msgspec.msgpack.encode([("accepted", 7, "a", None), ("done", 7, "a", 1)])
    assert told_of(Log((1, body))) == [(1, "accepted", 7, "a", None), (2, "done", 7, "a", 1)]
