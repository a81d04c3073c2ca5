"""Requests that hand in work may wait for capacity. One whose client disconnects meanwhile is dropped.

Nobody would read the answer, the client will probably try again, and others need the place.
"""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from ulak.http.hot_routes import Send

# Looking now and then costs a request nothing; listening for its end would cost each a task of its own.
LOOK_SECONDS = 1.0


class Submissions:
    def __init__(self) -> None:
        self._under_way: dict[asyncio.Task[None], Send] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    def enter(self, task: asyncio.Task[None], send: Send) -> None:
        self._under_way[task] = send

    def leave(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)

    async def watch(self) -> None:
        """Stop waiting for a client that hangs up; a job that is with the store already is kept all the same."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for task in [task for task, send in self._under_way.items() if has_hung_up(send)]:
                task.cancel()


def has_hung_up(send: Send) -> bool:
    """Known of uvicorn's own `send` only; `receive` would tell as well, but not before the body is read."""
    cycle = getattr(send, "__self__", None)
    return isinstance(cycle, RequestResponseCycle) and cycle.disconnected
