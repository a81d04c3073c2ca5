"""A commit's news as payloads of NOTIFY: everything is told, and none is too long."""

from __future__ import annotations

import msgspec
import pytest

from ulak.spine.store import AfterCommit
from ulak.stores.postgres.notices import MAX_BYTES, Notice, words


@pytest.mark.parametrize("letter", ["x", "é", "🚲", '"'])
def test_news_of_any_length_is_told_in_words_that_fit(letter):
    kinds = [f"{number:03}{letter * 97}" for number in range(60)]
    buffers = AfterCommit(ready={(kind, 2) for kind in kinds}, cancelled=list(range(10**18, 10**18 + 900)), due_at=7)
    told = words(buffers, kinds, events=True)
    assert max(len(payload.encode()) for payload in told) <= MAX_BYTES
    heard = [msgspec.json.decode(payload, type=Notice) for payload in told]
    assert {kind for word in heard for kind, _, _ in word.ready} == set(kinds)
    assert sorted(pool for word in heard for pool in word.free) == kinds
    assert [identifier for word in heard for identifier in word.cancelled] == buffers.cancelled
    assert [(word.due_at, word.events) for word in heard if word.events] == [(7, True)]


def test_little_news_is_one_word():
    assert len(words(AfterCommit(ready={("mail", 2)}), [], events=False)) == 1
