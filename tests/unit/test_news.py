"""When other processes are told: the new at once, more of the same a little later, in few words."""

from __future__ import annotations

import msgspec
import pytest

from ulak.clock import ManualClock
from ulak.spine.store import AfterCommit
from ulak.stores.postgres.clock import DatabaseClock
from ulak.stores.postgres.notices import MIN_SECONDS, PAUSE_SECONDS, News, Notice
from ulak.stores.postgres.notifier import Notifier

MAIL, TEXT = ("mail", 2), ("text", 2)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def news(clock: ManualClock) -> News:
    return News(clock)


def ready(*levels: tuple[str, int], lowest: int = 0) -> AfterCommit:
    return AfterCommit(ready=set(levels), lowest=dict.fromkeys(levels, lowest))


def add(news: News, buffers: AfterCommit, free: list[str] | None = None, *, events: bool = False) -> bool:
    return news.add(buffers, free or [], events=events)


def taken(news: News) -> list[Notice]:
    return [msgspec.json.decode(payload, type=Notice) for payload in news.take()]


def test_what_nobody_has_heard_of_is_told_at_once(news):
    assert add(news, ready(MAIL, lowest=7))
    assert news.due_in_seconds() <= 0
    assert taken(news) == [Notice(ready=[("mail", 2, 7)])]


def test_nothing_is_told_of_a_commit_without_news(news):
    assert not add(news, AfterCommit())
    assert taken(news) == []
    assert news.due_in_seconds() == float("inf")


def test_more_of_the_same_waits_and_goes_as_one_word(news, clock):
    add(news, ready(MAIL))
    taken(news)
    assert add(news, ready(MAIL, lowest=9))
    assert not add(news, ready(MAIL, lowest=8))
    clock.advance(PAUSE_SECONDS - 0.001)
    assert taken(news) == []
    clock.advance(0.001)
    assert taken(news) == [Notice(ready=[("mail", 2, 8)])]


def test_news_of_another_kind_does_not_wait_behind_a_flood(news, clock):
    add(news, ready(MAIL))
    taken(news)
    add(news, ready(MAIL))
    clock.advance(MIN_SECONDS)
    assert add(news, ready(TEXT))
    assert taken(news) == [Notice(ready=[("mail", 2, 0), ("text", 2, 0)])]


def test_two_words_are_never_closer_than_the_least_pause(news, clock):
    add(news, ready(MAIL))
    taken(news)
    add(news, ready(TEXT))
    assert taken(news) == []
    assert news.due_in_seconds() == pytest.approx(MIN_SECONDS)
    clock.advance(MIN_SECONDS)
    assert taken(news) == [Notice(ready=[("text", 2, 0)])]


def test_what_went_along_with_other_news_has_been_told(news, clock):
    add(news, ready(MAIL))
    taken(news)
    clock.advance(PAUSE_SECONDS)
    add(news, ready(MAIL, TEXT))
    taken(news)
    add(news, ready(TEXT))
    assert news.due_in_seconds() == pytest.approx(PAUSE_SECONDS)


@pytest.mark.parametrize(
    ("buffers", "free", "events", "word"),
    [
        (AfterCommit(due_at=5), [], False, Notice(due_at=5)),
        (AfterCommit(cancelled=[3]), [], False, Notice(cancelled=[3])),
        (AfterCommit(behind=True), [], False, Notice(behind=True)),
        (AfterCommit(), ["mail"], False, Notice(free=["mail"])),
        (AfterCommit(), [], True, Notice(events=True)),
    ],
)
def test_every_sort_of_news_is_told_at_once_and_again_after_the_pause(news, clock, buffers, free, events, word):
    add(news, buffers, free, events=events)
    assert taken(news) == [word]
    add(news, buffers, free, events=events)
    clock.advance(PAUSE_SECONDS - 0.001)
    assert taken(news) == []
    clock.advance(0.001)
    assert taken(news) == [word]


def test_the_earliest_deadline_and_the_lowest_id_are_told(news):
    add(news, AfterCommit(ready={MAIL}, lowest={MAIL: 4}, due_at=9))
    add(news, AfterCommit(ready={MAIL}, lowest={MAIL: 6}, due_at=8))
    assert taken(news) == [Notice(ready=[("mail", 2, 4)], due_at=8)]


def test_more_levels_than_a_word_holds_are_told_in_several(news):
    add(news, ready(*((f"kind-{number:03}", 2) for number in range(800))))
    told = taken(news)
    assert len(told) > 1
    assert sum(len(word.ready) for word in told) == 800


def test_who_says_hello_while_the_notifier_counts_the_others_is_not_overlooked():
    notifier = Notifier(connections=None, clock=DatabaseClock(ManualClock()), heard=lambda word: None)

    class Counting:
        """The count was taken before the other one came; its greeting is heard while the answer is read."""

        def execute(self, _statement):
            notifier._hear(1, 2, msgspec.json.encode(Notice(hello=True)).decode())
            return self

        def fetchall(self):
            return [(0, 0, 0, 1)]

    notifier._read_gauges(Counting())
    assert not notifier.alone
