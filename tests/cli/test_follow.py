"""`ulak events --follow`: it rests only when there is nothing more to read."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from ulak.cli.commands import events


class Scripted:
    """An API that answers with pages of so many events, and then hangs up."""

    def __init__(self, *sizes):
        self._sizes = list(sizes)

    async def ask(self, method, path, query):
        if not self._sizes:
            raise ConnectionResetError
        seqs = range(query["after"] + 1, query["after"] + 1 + self._sizes.pop(0))
        return {"events": [{"seq": seq} for seq in seqs], "after": seqs.stop - 1}


async def test_a_short_page_is_followed_by_the_next_at_once(monkeypatch, capsys):
    rests = []

    async def rest(seconds):
        rests.append(len(capsys.readouterr().out.splitlines()))

    monkeypatch.setattr(events, "asyncio", SimpleNamespace(sleep=rest))
    with pytest.raises(ConnectionResetError):
        await events.events(Scripted(3, 2, 0, 1, 0), after=0, limit=100, follow=True)
    assert rests == [5, 1]
