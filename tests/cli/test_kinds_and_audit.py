"""`ulak kinds` and `ulak audit` on a store that nobody serves."""

from __future__ import annotations

import asyncio

import pytest
from typer.testing import CliRunner

from ulak import Ulak
from ulak.cli import app
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


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_line_that_is_not_there_ends_verify_with_status_1(store, ulak, form):
    ulak("kinds", "pause", "mail.send")
    found = ulak("audit", "verify", "--json")
    kept = CliRunner().invoke(app, ["audit", "verify", "--head", f"{found['seq']}:{found['hash']}", *form])
    lost = CliRunner().invoke(app, ["audit", "verify", "--head", f"{found['seq']}:abc", *form])
    assert (kept.exit_code, lost.exit_code) == (0, 1)


@pytest.mark.parametrize("head", ["x", "1", ":abc", "²:abc", "-1:abc"])
def test_a_head_that_is_none_is_refused(store, ulak, head):
    with pytest.raises(Invalid, match="is not SEQ:HASH; give what an earlier run printed"):
        ulak("audit", "verify", "--head", head)
