"""Submits commands and follows them up: further searches and offers, for callers and for the room's own jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ulak.dispatch.acts import Acts
from ulak.dispatch.command import Command, CommandAnswer, Expire, Extend, Proceed, Skip, TaskCommand, TaskVerdict
from ulak.dispatch.depth import Depth
from ulak.dispatch.fairness import list_overdue
from ulak.dispatch.nearby.search import Searches
from ulak.errors import Unavailable
from ulak.spine.store import Store, Verb, WriterQueue

MAX_FAILURES = 3
MAX_OVERDUE = 500


class TaskProgress:
    """Submits commands, and follows their verdicts until a task waits for somebody or has ended."""

    def __init__(self, acts: Acts, open_store: Callable[[], Store], depth: Depth) -> None:
        self._verb: Verb[Command, CommandAnswer] = Verb(WriterQueue.ENQUEUE, acts.run)
        self._store = open_store
        self._depth = depth
        self.searches = Searches(open_store, acts.policy)

    async def submit(self, command: Command) -> CommandAnswer:
        return await self._store().submit(self._verb, command)

    async def settle(self, answer: CommandAnswer) -> TaskVerdict:
        """Follow a verdict until nothing more has to be done: search again, go on down the list.

        The command itself is committed: if the store fails afterwards, the caller still gets its verdict, and a job
        takes the task further.
        """
        failures = 0
        while True:
            assert isinstance(answer, TaskVerdict)
            self._depth.live += answer.change
            following: CommandAnswer | None = None
            while following is None:
                if answer.wish is None or failures == MAX_FAILURES:
                    return answer
                try:
                    following = await self.submit(await self._following(answer))
                except Unavailable:
                    failures += 1
            answer = following

    async def _following(self, verdict: TaskVerdict) -> TaskCommand:
        task = verdict.view.task
        if verdict.wish == "proceed":
            return Proceed(task.id)
        return Extend(task.id, task.searches, await self.searches.find(task))

    async def run(self, command: Expire | Proceed | Skip) -> float | None:
        """Returns the seconds that are left when an offer's deadline has not come."""
        answer = await self.submit(command)
        if not isinstance(answer, TaskVerdict):
            return None  # pruned
        verdict = await self.settle(answer)
        return None if answer.again_at is None else max(answer.again_at - verdict.view.now, 1) / 1000

    async def skip(self, task: str, offer: str) -> None:
        """Move on from an offer whose message died. Ids as in the message; a foreign one is 0, which nothing has."""
        ids = self._store().ids
        await self.run(Skip(ids.from_uuid(task) or 0, ids.from_uuid(offer) or 0))

    async def expire_overdue(self, grace_millis: int) -> None:
        """End offers whose timers were lost, oldest first."""
        found = await self._store().read(list_overdue, grace_millis, MAX_OVERDUE)
        await asyncio.gather(*(self.run(Expire(task, offer)) for task, offer in found))
