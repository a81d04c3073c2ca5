"""Which callers share a commit, and that the writer serves whatever comes while it is busy."""

from __future__ import annotations

import asyncio

from tests.contract.bench import Bench


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
