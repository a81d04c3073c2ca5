"""Which callers share a commit, and that the writer serves whatever comes while it is busy."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.contract.bench import Bench
from ulak.spine.store import Tx
from ulak.spine.units.slots import hand_on


def commits(bench: Bench) -> float:
    return bench.store.gauges()["commits_total"]


async def test_callers_that_go_on_share_their_commits(bench: Bench):
    async def go_on() -> None:
        for _ in range(20):
            await bench.add()

    before = commits(bench)
    await asyncio.gather(*[go_on() for _ in range(5)])
    assert commits(bench) - before < 40  # of 100 jobs, one after another in each of five callers


async def test_a_caller_alone_gets_a_commit_for_each_of_its_jobs_and_others_join_it(bench: Bench):
    before = commits(bench)
    for _ in range(5):
        await bench.add()
    assert commits(bench) - before >= 5
    before = commits(bench)
    await asyncio.gather(*[bench.add() for _ in range(50)])
    assert commits(bench) - before < 10


async def test_more_than_a_commit_may_carry_is_served_without_another_call(bench: Bench):
    added = await asyncio.wait_for(asyncio.gather(*[bench.add() for _ in range(1_500)]), 30)
    assert len(set(added)) == 1_500
    assert (await bench.live())["mail"] == 1_500


async def test_a_job_that_collides_takes_all_jobs_of_its_caller_with_it_and_no_others(bench: Bench):
    taken = bench.row("mail")
    await bench.offer(taken)
    colliding = [bench.row("mail"), bench.row("mail", id=taken.id), bench.row("mail")]
    refused, kept = await asyncio.gather(
        bench.offer(*colliding), bench.offer(bench.row("mail"), bench.row("mail")), return_exceptions=True
    )
    assert isinstance(refused, Exception)
    assert isinstance(kept, list)
    assert (await bench.live())["mail"] == 3


async def test_many_slots_are_handed_on_without_a_file_beside_the_store(opened, tmp_path):
    def hand_on_all(tx: Tx) -> list[str]:
        hand_on(tx, [(f"k{number}", 2) for number in range(100)])
        return [str(link.readlink()) for link in list(Path("/proc/self/fd").iterdir()) if link.is_symlink()]

    async with opened(f"{tmp_path}/ulak.db") as bench:
        await bench.offer(
            *[bench.row("mail", "x" * 3000, key=f"k{number}") for number in range(100) for _ in ("first", "behind")]
        )
        files = await bench.store.write(hand_on_all)
        assert (await bench.live())["mail"] == 200
    assert not [name for name in files if "etilqs" in name]  # as SQLite calls the files of its own
