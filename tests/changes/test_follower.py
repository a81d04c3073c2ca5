"""A copy that bootstraps, follows, proves itself, mends itself, and survives 410 and kill -9."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap

import pytest

from ulak.changes.follower import Follower
from ulak.errors import Invalid, Unavailable


def follower(door, path, feed="einvoice", **given):
    return Follower(f"{door.served.address}/api/v1/{feed}", path, **given)


@pytest.fixture
async def copy(door, tmp_path):
    made = follower(door, tmp_path / "copy.db")
    yield made
    made.close()


async def same(door, copy, feed="einvoice"):
    state = await door.desk.state(feed)
    return (copy.copy.state_hash(), copy.copy.count()) == (state.state_hash, state.count)


async def test_it_bootstraps_and_follows(door, copy):
    await door.desk.publish(range(1, 51))
    assert await copy.catch_up() == (await door.desk.state()).state_hash
    for step in range(1, 5):
        await door.desk.publish(range(1 + step, 51 + step), title="YENİ" if step % 2 else "UNVAN")
        await copy.catch_up()
        assert await same(door, copy)
    assert copy.copy.get("0000000051")["title"] == "UNVAN 51"


async def test_it_begins_again_when_the_log_does_not_reach_back(door, copy):
    await door.desk.publish(range(1, 51))
    await copy.catch_up()
    await door.desk.publish(range(1, 52))
    door.desk.clock.advance(40 * 86_400)
    await door.desk.publish(range(1, 53))
    await copy.catch_up()
    assert await same(door, copy)


async def test_it_mends_what_somebody_else_has_spoilt(door, copy, tmp_path):
    await door.desk.publish(range(1, 51))
    await copy.catch_up()
    with sqlite3.connect(tmp_path / "copy.db") as spoiler:
        spoiler.execute("DELETE FROM record WHERE key LIKE '%0000000007'")
        spoiler.execute("UPDATE record SET body = replace(body, 'UNVAN', 'YALAN') WHERE key LIKE '%0000000009'")
    spoiler.close()
    told = []
    with contextlib.closing(
        follower(door, tmp_path / "copy.db", tell=lambda word, facts: told.append((word, facts)))
    ) as again:
        await again.catch_up()
        assert await same(door, again)
        assert again.copy.get("0000000009")["title"] == "UNVAN 9"
    assert [word for word, _ in told] == ["repaired"]
    assert len(told[0][1]["buckets"]) == 2


class Meddled(Follower):
    """A follower whose answers are changed, or come after something else has happened."""

    async def _get(self, session, path):
        return await self.meddle(path, await super()._get(session, path))


def meddled(door, path, meddle):
    made = Meddled(f"{door.served.address}/api/v1/einvoice", path)
    made.meddle = meddle
    return contextlib.closing(made)


def spoil(path):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as spoiler:
        spoiler.execute("DELETE FROM record WHERE key LIKE '%0000000007'")


async def test_a_feed_that_moves_during_a_repair_is_followed_until_the_copy_is_proven(door, copy, tmp_path):
    await door.desk.publish(range(1, 51))
    await copy.catch_up()
    spoil(tmp_path / "copy.db")
    moves = [range(1, 53)]

    async def move(path, answer):
        if path == "/buckets" and moves:
            await door.desk.publish(moves.pop())
        return answer

    with meddled(door, tmp_path / "copy.db", move) as again:
        assert await again.catch_up() == (await door.desk.state()).state_hash
        assert await same(door, again)
    assert not moves


async def test_a_copy_that_no_repair_makes_equal_is_never_called_proven(door, copy, tmp_path):
    await door.desk.publish(range(1, 51))
    await copy.catch_up()
    spoil(tmp_path / "copy.db")

    async def keep_back(path, answer):
        return {**answer, "items": []} if path.startswith("/buckets/") else answer

    with meddled(door, tmp_path / "copy.db", keep_back) as again, pytest.raises(Unavailable, match="still differs"):
        await again.catch_up()


async def test_a_server_that_has_nothing_yet_is_waited_for(door, copy):
    with pytest.raises(Unavailable, match="503"):
        await copy.catch_up()


async def test_a_file_is_the_copy_of_one_feed(door, copy, tmp_path):
    await door.desk.publish(range(1, 11))
    await copy.catch_up()
    with pytest.raises(Invalid, match="is a copy of einvoice"):
        follower(door, tmp_path / "copy.db", "edespatch")


CHILD = """
import asyncio, os, signal, sys
from ulak.changes import follower
point, number, url, path = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
real = getattr(follower.Copy, point)
def dies(*args, **kwargs):
    global number
    number -= 1
    if number == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)
setattr(follower.Copy, point, dies)
follower.PAGE = 7
follower.BATCH = 9
asyncio.run(follower.Follower(url, path).catch_up())
"""


@pytest.mark.parametrize(
    ("point", "number"),
    [
        ("begin_anew", 1),
        ("load", 2),
        ("finish_load", 1),
        ("_put", 3),
        ("_put", 17),
        ("_commit", 1),
        ("_commit", 3),
        ("apply", 2),
    ],
)
async def test_a_kill_at_any_step_loses_and_doubles_nothing(door, tmp_path, point, number):
    import asyncio

    await door.desk.publish(range(1, 41))
    await door.desk.publish(range(5, 71), title="YENİ")
    path = tmp_path / "killed.db"
    url = f"{door.served.address}/api/v1/einvoice"
    if point in {"_put", "apply"} or number > 1:  # with something to follow
        state = await door.desk.room.feeds.archives("einvoice")
        assert len(state) == 2
    command = [sys.executable, "-c", textwrap.dedent(CHILD), point, str(number), url, str(path)]
    child = await asyncio.create_subprocess_exec(*command, stderr=subprocess.DEVNULL, env=dict(os.environ))
    await child.wait()
    await door.desk.publish(range(8, 75))
    survivor = Follower(url, path)
    await survivor.catch_up()
    assert await same(door, survivor)
    survivor.close()
    assert child.returncode in {0, -signal.SIGKILL}
