"""Requests that hand in work may wait for capacity. One whose client disconnects meanwhile is dropped.

Nobody would read the answer, the client will probably try again, and others need the place.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from ulak.http.hot_routes import Send

# Looking now and then costs a request nothing; listening for its end would cost each a task of its own.
LOOK_SECONDS = 1.0


class Submissions(dict["asyncio.Task[Any]", Send]):
    """Those that are under way: the task of each, and its client's `send`."""

    async def watch(self) -> None:
        """Stop waiting for a client that hangs up; a job that is with the store already is kept all the same."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            for task in [task for task, send in self.items() if has_hung_up(send)]:
                task.cancel()


def has_hung_up(send: Send) -> bool:
    """Known of uvicorn's own `send` only; `receive` would tell as well, but not before the body is read."""
    cycle = getattr(send, "__self__", None)
    return isinstance(cycle, RequestResponseCycle) and cycle.disconnected
