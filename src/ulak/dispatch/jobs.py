"""The room's handlers: a deadline, a task that has to go on, and a message that could not be delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ulak.backoff import Backoff
from ulak.dispatch.command import Expire, Proceed
from ulak.dispatch.model import EXPIRE, SEARCH, UNDELIVERED
from ulak.spine.handler import Handler
from ulak.spine.job import Job
from ulak.spine.outcome import Done, Snooze

if TYPE_CHECKING:
    from ulak.dispatch.progress import TaskProgress

# Deadlines that come together are decided together: the more run at once, the fewer commits.
CONCURRENCY = {EXPIRE: 250, SEARCH: 50, UNDELIVERED: 50}
# A deadline is kept however long the store is away.
MAX_ATTEMPTS = 10_000
PATIENCE = Backoff(0.5, 2.0, 30.0)


def handlers(progress: TaskProgress) -> tuple[Handler, ...]:
    async def expire(job: Job) -> Done | Snooze:
        """Not as a unit of its end: there it would take its locks in the opposite order."""
        seconds = await progress.run(Expire(job.payload["task"], job.payload["offer"]))
        return Done() if seconds is None else Snooze(seconds, "the deadline is not there yet")

    async def search(job: Job) -> Done:
        await progress.run(Proceed(job.payload["task"]))
        return Done()

    async def undelivered(job: Job) -> Done:
        metadata: dict[str, Any] = job.payload["payload"].get("metadata", {})
        if job.payload["outcome"] == "dead" and "offerId" in metadata:
            await progress.skip(metadata["taskId"], metadata["offerId"])
        return Done()

    calls = {EXPIRE: expire, SEARCH: search, UNDELIVERED: undelivered}
    return tuple(
        Handler(kind, call, concurrency=CONCURRENCY[kind], max_attempts=MAX_ATTEMPTS, backoff=PATIENCE)
        for kind, call in calls.items()
    )
