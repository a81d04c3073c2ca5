"""`ulak kinds` and `ulak audit` on a store that nobody serves."""

from __future__ import annotations

import asyncio

import pytest

from ulak import Ulak
from ulak.errors import Error, Invalid


async def filled():
    async with Ulak("sqlite:///ulak.db", work=False) as made:
        await made.enqueue("mail.send")


@pytest.fixture
def store():
    asyncio.run(filled())


def test_a_kind_is_paused_bounded_and_resumed(store, ulak):
    assert ulak("kinds", "pause", "mail.send", "--json")["paused"] is True
    assert "mail.send" in ulak("kinds", "list")
    assert ulak("kinds", "set", "mail.send", "--concurrency", "3", "--json")["concurrency"] == 3
    assert "at most 3" in ulak("kinds", "resume", "mail.send")
    assert "as many as" in ulak("kinds", "set", "mail.send", "--declared")
    with pytest.raises(Invalid, match="--concurrency"):
        ulak("kinds", "set", "mail.send")
    with pytest.raises(Error, match="no kind"):
        ulak("kinds", "pause", "nobody.knows")


def test_the_audit_log_is_listed_and_verified(store, ulak):
    ulak("kinds", "pause", "mail.send")
    first = ulak("audit", "verify", "--json")
    ulak("kinds", "resume", "mail.send")
    assert [line["verb"] for line in ulak("audit", "list", "--json")["items"]] == ["kinds.resume", "kinds.pause"]
    assert [line["verb"] for line in ulak("audit", "list", "--verb", "kinds.pause", "--json")["items"]] == [
        "kinds.pause"
    ]
    assert "2 lines" in ulak("audit", "verify", "--head", f"{first['seq']}:{first['hash']}")
    assert ulak("audit", "verify", "--head", "1:abc", "--json")["valid"] is False
