"""The writer: one thread and one session that serves lines of waiting units, many to a commit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ulak.clock import SystemClock
from ulak.errors import Refused, Unavailable
from ulak.spine import probe
from ulak.spine.store import AfterCommit, Tx, Verb, WriterQueue
from ulak.stores.writer.batch import Batches, Item, Raised
from ulak.stores.writer.session import BatchFailed, Fatal, Session

# How many items of each line one commit may carry: enough to share a sync, few enough that nobody waits long.
SHARES = {
    WriterQueue.SETTLE: 64,
    WriterQueue.CLAIM: 64,
    WriterQueue.TIMERS: 64,
    WriterQueue.ENQUEUE: 400,
    WriterQueue.UNIT: 64,
    WriterQueue.BULK: 1,
}

MAX_ROWS = 2_000  # of callers that bring many rows at once: their commit holds up everybody

HANDOVER_BOUND = 50_000

# So many turns of the event loop pass before the thread is woken, from the first request or from the answers to the
# last batch. Callers that go on and handlers that end come in within three turns, and so share the next commit: 40,000
# jobs end to end took 405 commits. A thread that went on by itself took 803, and settled 36 % less beside 2,000
# producers.
TURNS = 3


class Writer:
    """Serves its lines until it is closed. Everything but `run` and below is called on the event loop."""

    def __init__(
        self,
        name: str,
        session: Session,
        lines: Sequence[WriterQueue],
        loop: asyncio.AbstractEventLoop,
        after_commit: Callable[[AfterCommit], None],
        lost: Callable[[Exception], None],
    ) -> None:
        self._session = session
        self._batches = Batches(session, self._take_latecomers, self._next_piggyback, lambda: self._given_up)
        self._lines: dict[WriterQueue, deque[Item]] = {line: deque() for line in lines}
        self._owes_bulk = False  # the last batch was of the others, so a bulk item that waits comes next
        self._last: deque[Item] = deque()
        self._piggybacks: deque[Item] = deque()
        self._loop = loop
        self._after_commit = after_commit
        self._lost = lost
        self._wake = threading.Event()
        self._called = False
        self._is_single = False  # one caller goes on by itself: nobody is to share its next commit
        self._closing = False
        self._given_up = False
        self._taking = threading.Lock()
        self._batch: list[Item] = []
        self._since: float | None = None
        self._ended = asyncio.Event()
        self._dead: Exception | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.commits = 0
        self.failures = 0

    def start(self) -> None:
        self._thread.start()

    def submit(self, verb: Verb[Any, Any], value: Any) -> asyncio.Future[Any]:
        if self._dead is not None or self._closing:
            raise Unavailable(f"the store is closed{f': {self._dead}' if self._dead else ''}")
        line = self._lines[verb.line]
        if len(line) >= HANDOVER_BOUND:
            raise Refused("the store is too far behind to take more; try again later", retry_after_seconds=1)
        future = self._loop.create_future()
        line.append(Item(verb, value, future))
        if not self._called:
            self._call()
        return future

    def _call(self) -> None:
        """Wake the thread for one batch. It is not called again before the loop has heard its answer."""
        self._called = True
        if self._is_single:
            self._wake.set()
        else:
            self._loop.call_soon(self._wake_after, TURNS)

    def piggyback(self, verb: Verb[Any, Any], value: Any) -> asyncio.Future[Any]:
        """Wait without waking the thread, for the first commit that makes something ready."""
        item = Item(verb, value, self._loop.create_future())
        self._piggybacks.append(item)
        return item.future

    def withdraw_piggyback(self) -> None:
        """Resolve items that still wait for a commit with None; one that is under way gets its result."""
        while (item := self._next_piggyback()) is not None:
            if not item.future.done():
                item.future.set_result(None)

    def _next_piggyback(self) -> Item | None:
        """The loop and the thread both take from this end, so looking before leaping would not do."""
        try:
            return self._piggybacks.popleft()
        except IndexError:
            return None

    def _wake_after(self, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._wake_after, turns - 1)
        else:
            self._wake.set()

    @property
    def reruns(self) -> int:
        return self._batches.reruns

    def waiting(self) -> int:
        return sum(map(len, self._lines.values())) + len(self._last)

    def stalled_seconds(self) -> float:
        """For how long the batch that is under way has waited for the database; 0 when there is none."""
        since = self._since
        return 0.0 if since is None else SystemClock.monotonic() - since

    async def close(self, last: Callable[[Tx], None] | None = None) -> None:
        """Serve waiting items, then a last unit, and end the thread, however long the database takes: see `give_up`."""
        if last is not None:
            farewell = self._loop.create_future()
            farewell.add_done_callback(asyncio.Future.exception)  # nobody minds if it fails
            self._last.append(Item(RUN_UNIT, last, farewell))
        self._closing = True
        self.withdraw_piggyback()
        self._wake.set()
        await self._ended.wait()

    def give_up(self) -> None:
        """Abandon the thread where it is stuck: all waiting callers get an error, and it begins nothing more."""
        self._closing = True
        with self._taking:
            self._given_up = True
            untouched = [item for line in self._lines.values() for item in line]
            for line in self._lines.values():
                line.clear()
        self.withdraw_piggyback()
        self._wake.set()
        _refuse(untouched, "the store was closed before it came to this; nothing was kept", "no")
        stuck = "the store was closed while the database did not answer; look whether this was kept"
        _refuse(self._batch, stuck, "unknown")

    def _run(self) -> None:
        try:
            while True:
                self._wake.wait()
                self._wake.clear()
                if batch := self._take():
                    self._serve(batch)
                    self._since = None
                if self._given_up or (self._closing and not self.waiting()):
                    return
        except BaseException as error:  # noqa: BLE001 - a thread that ends unseen leaves everybody waiting
            self._dead = Fatal(f"the writer ended: {error!r}")
            self._tell(self._fall, self._dead)
        finally:
            self._session.close()
            self._tell(self._ended.set)

    def _fall(self, error: Exception) -> None:
        self._lost(error)
        _refuse(self._batch, f"{error}; look whether this was kept", "unknown")
        for line in self._lines.values():
            _refuse(list(line), f"{error}; nothing was kept", "no")
            line.clear()
        self.withdraw_piggyback()

    def _take(self) -> list[Item]:
        with self._taking:
            if self._given_up:
                return []
            batch = self._next_batch()
            if not batch and self._last:
                batch.append(self._last.popleft())
            self._batch, self._since = batch, SystemClock.monotonic() if batch else None
            return batch

    def _next_batch(self) -> list[Item]:
        """A share of every line, or one bulk item, in turn: neither waits for more than one of the other."""
        bulk = self._lines.get(WriterQueue.BULK)
        if bulk and self._owes_bulk:
            self._owes_bulk = False
            return [bulk.popleft()]
        batch = self._shares()
        self._owes_bulk = bool(batch)
        return batch if batch or not bulk else [bulk.popleft()]

    def _shares(self) -> list[Item]:
        batch: list[Item] = []
        for line, waiting in self._lines.items():
            if line is not WriterQueue.BULK:
                batch += _share(waiting, SHARES[line])
        return batch

    def _take_latecomers(self, batch: list[Item]) -> list[Item]:
        """Callers that came while a bulk item ran share its commit and its fate, and need not wait for two of them."""
        if batch[0].verb.line is not WriterQueue.BULK:
            return []
        with self._taking:
            late = [] if self._given_up else self._shares()
            batch += late
        return late

    def _serve(self, batch: list[Item]) -> None:
        if self._dead is not None:
            self._answer(batch, None, Unavailable(f"the store stopped: {self._dead}", outcome="no"))
            return
        probe.reach("writer.before_batch")
        try:
            buffers = self._batches.run(batch)
        except Fatal as error:
            self._dead = error
            self._tell(self._lost, error)
            self._answer(
                batch, None, Unavailable(f"the store failed: {error}; start the process again", outcome="unknown")
            )
        except BatchFailed as failed:
            self.failures += 1
            self._answer(batch, None, self._session.translate(failed.error))
        except BaseException as error:  # noqa: BLE001 - every caller must be answered, whatever went wrong
            self._answer(batch, None, self._batches.failure(error))
            self._session.rollback()
        else:
            probe.reach("writer.after_commit")
            self.commits += 1
            self._answer(batch, buffers, None)

    def _answer(self, batch: list[Item], buffers: AfterCommit | None, error: Exception | None) -> None:
        self._tell(self._resolve, batch, buffers, error)

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        """On the event loop; a thread that was left behind has nobody to tell, and perhaps no loop."""
        if not self._given_up:
            with contextlib.suppress(RuntimeError):  # given up, and closed, in this very moment
                self._loop.call_soon_threadsafe(call, *args)

    def _resolve(self, batch: list[Item], buffers: AfterCommit | None, error: Exception | None) -> None:
        if buffers is not None:
            self._after_commit(buffers)
        for item in batch:
            future = item.future
            if future.done():
                continue
            answer = item.answer if error is None else Raised(error)
            if type(answer) is Raised:
                future.set_exception(answer.error)
            else:
                future.set_result(answer)
        self._called = False
        others_wait = self.waiting() > 0
        self._is_single = len(batch) == 1 and not others_wait
        if others_wait:
            self._call()


def _share(waiting: deque[Item], most: int) -> list[Item]:
    taken: list[Item] = []
    rows = 0
    while waiting and len(taken) < most and rows < MAX_ROWS:
        item = waiting.popleft()
        weigh = item.verb.weigh
        rows += 1 if weigh is None else weigh(item.value)
        taken.append(item)
    return taken


def _refuse(items: list[Item], why: str, outcome: str) -> None:
    for item in items:
        if not item.future.done():
            item.future.set_exception(Unavailable(why, outcome=outcome))


RUN_UNIT: Verb[Callable[[Tx], Any], Any] = Verb(WriterQueue.UNIT, lambda tx, units: [unit(tx) for unit in units])
