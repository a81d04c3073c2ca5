"""The writer: one thread and one session that serves lines of waiting units, many to a commit.

A batch runs bare; when a unit raises, the batch is rolled back and run again with each item alone behind a savepoint.
A commit whose fate is not known is looked up by its token after the session was opened anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from ulak.clock import SystemClock
from ulak.errors import Refused, Unavailable
from ulak.spine import probe
from ulak.spine.store import Buffers, Line, Tx, Verb

# What one commit may carry of each line: enough to share a sync, little enough that nobody waits long.
SHARES = {Line.SETTLE: 64, Line.CLAIM: 64, Line.TIMERS: 64, Line.ENQUEUE: 400, Line.UNIT: 64}

HANDOVER_BOUND = 50_000

# So many turns of the event loop pass before the thread is woken, from the first request or from the answers to the
# last batch. Callers that go on and handlers that end come in within three turns, and so share the next commit.
TURNS = 3


class CommitUnknown(Exception):
    """The commit was sent, and its answer was lost."""


class SessionLost(Exception):
    """The session broke before the commit: nothing of the batch is kept."""


class BatchFailed(Exception):
    """Nothing of the batch is kept, and running it again would not help."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


class Fatal(Exception):
    """The store can't be trusted any more in this process."""


class Session(Protocol):
    """A connection as the writer needs it. Driver errors are translated here."""

    def begin(self) -> Tx: ...

    def savepoint(self) -> None: ...

    def release(self) -> None: ...

    def rollback_to(self) -> None:
        """Undo the item after the savepoint; raises SessionLost when the whole transaction is gone."""

    def commit(self, tx: Tx) -> None:
        """Write the events and counts of `tx` and commit. Raises CommitUnknown, SessionLost or Fatal."""

    def rollback(self) -> None: ...

    def reopen(self) -> None:
        """Open the session anew, waiting for the database with growing pauses; raises Fatal to give up."""

    def committed(self) -> bool:
        """Whether the last commit that was tried is there."""

    def translate(self, error: Exception) -> Exception:
        """A driver's error as the caller should see it."""

    def lost(self, error: BaseException) -> bool:
        """Whether this error means that the session is gone."""

    def close(self) -> None: ...


class Item(msgspec.Struct, eq=False):
    """One caller's part of a batch."""

    verb: Verb[Any, Any]
    value: Any
    future: asyncio.Future[Any]
    answer: Any = None


class Writer:
    """Serves its lines until it is closed. Everything but `run` and below is called on the event loop."""

    def __init__(
        self,
        name: str,
        session: Session,
        lines: Sequence[Line],
        loop: asyncio.AbstractEventLoop,
        after_commit: Callable[[Buffers], None],
        lost: Callable[[Exception], None],
    ) -> None:
        self._session = session
        self._lines: dict[Line, deque[Item]] = {line: deque() for line in lines}
        self._riders: deque[Item] = deque()
        self._loop = loop
        self._after_commit = after_commit
        self._lost = lost
        self._wake = threading.Event()
        self._called = False
        self._closing = False
        self._given_up = False
        self._taking = threading.Lock()
        self._batch: list[Item] = []
        self._since: float | None = None
        self._ended = asyncio.Event()
        self._dead: Exception | None = None
        self._recent_failures = 0
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self.commits = 0
        self.reruns = 0
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
        self._call()
        return future

    def _call(self) -> None:
        """Wake the thread soon. Until it has answered it is not called again: what comes in meanwhile waits for it."""
        if not self._called:
            self._called = True
            self._loop.call_soon(self._wake_after, TURNS)

    def ride(self, verb: Verb[Any, Any], value: Any) -> asyncio.Future[Any]:
        """Wait without waking the thread, for the first commit that makes something ready."""
        rider = Item(verb, value, self._loop.create_future())
        self._riders.append(rider)
        return rider.future

    def alight(self) -> None:
        """Who still waits for a ride gets None; who is on the way gets an answer."""
        while (rider := self._next_rider()) is not None:
            if not rider.future.done():
                rider.future.set_result(None)

    def _next_rider(self) -> Item | None:
        """The loop and the thread both take from this end, so looking before leaping would not do."""
        try:
            return self._riders.popleft()
        except IndexError:
            return None

    def _wake_after(self, turns: int) -> None:
        if turns:
            self._loop.call_soon(self._wake_after, turns - 1)
        else:
            self._wake.set()

    def waiting(self) -> int:
        return sum(map(len, self._lines.values()))

    def silent_seconds(self) -> float:
        """For how long the batch that is under way has waited for the database; 0 when there is none."""
        since = self._since
        return 0.0 if since is None else SystemClock.monotonic() - since

    async def close(self) -> None:
        """Serve what waits, then end the thread. That takes as long as the database does: see `give_up`."""
        self._closing = True
        self.alight()
        self._wake.set()
        await self._ended.wait()

    def give_up(self) -> None:
        """Leave the thread behind where it is stuck: all who wait are told, and it begins nothing any more."""
        self._closing = True
        with self._taking:
            self._given_up = True
            untouched = [item for line in self._lines.values() for item in line]
            for line in self._lines.values():
                line.clear()
        self.alight()
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
        finally:
            self._session.close()
            self._tell(self._ended.set)

    def _take(self) -> list[Item]:
        with self._taking:
            if self._given_up:
                return []
            batch: list[Item] = []
            for line, waiting in self._lines.items():
                batch += [waiting.popleft() for _ in range(min(len(waiting), SHARES[line]))]
            self._batch, self._since = batch, SystemClock.monotonic() if batch else None
            return batch

    def _serve(self, batch: list[Item]) -> None:
        if self._dead is not None:
            self._answer(batch, None, Unavailable(f"the store stopped: {self._dead}", outcome="no"))
            return
        probe.reach("writer.before_batch")
        try:
            buffers = self._commit(batch)
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
            self._answer(batch, None, self._failure(error))
            self._session.rollback()
        else:
            probe.reach("writer.after_commit")
            self.commits += 1
            self._answer(batch, buffers, None)

    def _commit(self, batch: list[Item]) -> Buffers:
        """Run the batch to a known end, whatever happens to the session on the way."""
        for _ in range(20):
            if self._given_up:
                break
            try:
                return self._attempt(batch)
            except CommitUnknown:
                self._session.reopen()
                if self._session.committed():
                    return Buffers() if self._tx is None else self._tx.buffers
            except SessionLost:
                self._session.reopen()
        why = "the store was closed" if self._given_up else "the database went away twenty times during one batch"
        raise Fatal(why)

    _tx: Tx | None = None

    def _attempt(self, batch: list[Item]) -> Buffers:
        if self._recent_failures < 3:
            try:
                buffers = self._run_bare(batch)
            except (CommitUnknown, SessionLost, BatchFailed, Fatal):
                raise
            except BaseException as error:  # noqa: BLE001 - any unit may raise anything; the batch runs again
                self._undo(error)
                self.reruns += 1
                self._recent_failures += 1
            else:
                self._recent_failures = 0
                return buffers
        self._recent_failures = max(self._recent_failures - 1, 0)
        return self._run_isolated(batch)

    def _undo(self, error: BaseException) -> None:
        if self._session.lost(error):
            raise SessionLost(str(error)) from error
        self._session.rollback()

    def _run_bare(self, batch: list[Item]) -> Buffers:
        tx = self._tx = self._session.begin()
        for verb, group in _by_verb(batch).items():
            for item, answer in zip(group, verb.run(tx, [item.value for item in group]), strict=True):
                item.answer = answer
        if tx.buffers.ready and (rider := self._next_rider()) is not None:
            batch.append(rider)  # it shares the batch's fate from here on
            rider.answer = rider.verb.run(tx, [rider.value])[0]
        probe.reach("writer.before_commit")
        self._session.commit(tx)
        return tx.buffers

    def _run_isolated(self, batch: list[Item]) -> Buffers:
        tx = self._tx = self._session.begin()
        for item in batch:
            before = tx.buffers.copy()
            self._session.savepoint()
            try:
                item.answer = item.verb.run(tx, [item.value])[0]
                msgspec.msgpack.encode(tx.buffers.events[len(before.events) :])  # one that can't be written fails alone
                self._session.release()
            except (CommitUnknown, SessionLost, BatchFailed, Fatal):
                raise
            except BaseException as error:
                if self._session.lost(error):
                    raise SessionLost(str(error)) from error
                self._session.rollback_to()
                tx.buffers = before
                item.answer = Raised(self._failure(error))
        self._session.commit(tx)
        return tx.buffers

    def _failure(self, error: BaseException) -> Exception:
        """As its caller can take it: a future refuses StopIteration, and SystemExit would end the loop."""
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return self._session.translate(error)
        return RuntimeError(f"the unit raised {error!r}")

    def _answer(self, batch: list[Item], buffers: Buffers | None, error: Exception | None) -> None:
        self._tell(self._resolve, batch, buffers, error)

    def _tell(self, call: Callable[..., None], *args: Any) -> None:
        """On the event loop; a thread that was left behind has nobody to tell, and perhaps no loop."""
        if not self._given_up:
            with contextlib.suppress(RuntimeError):  # given up, and closed, in this very moment
                self._loop.call_soon_threadsafe(call, *args)

    def _resolve(self, batch: list[Item], buffers: Buffers | None, error: Exception | None) -> None:
        if buffers is not None:
            self._after_commit(buffers)
        for item in batch:
            future, answer = item.future, item.answer
            if future.done():
                continue
            if error is not None:
                future.set_exception(error)
            elif type(answer) is Raised:
                future.set_exception(answer.error)
            else:
                future.set_result(answer)
        self._called = False
        if self.waiting():
            self._call()


class Raised:
    """An item's failure, kept apart from an answer."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


def _refuse(items: list[Item], why: str, outcome: str) -> None:
    for item in items:
        if not item.future.done():
            item.future.set_exception(Unavailable(why, outcome=outcome))


def _by_verb(batch: list[Item]) -> dict[Verb[Any, Any], list[Item]]:
    groups: dict[Verb[Any, Any], list[Item]] = {}
    for item in batch:
        group = groups.get(item.verb)
        if group is None:
            groups[item.verb] = [item]
        else:
            group.append(item)
    return groups


RUN_UNIT: Verb[Callable[[Tx], Any], Any] = Verb(Line.UNIT, lambda tx, units: [unit(tx) for unit in units])
