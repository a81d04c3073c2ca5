"""A batch on its way: run bare or, when a unit raises, again with each item alone behind a savepoint.

A commit whose fate is not known is looked up by its token after the session was opened anew.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter
from typing import Any

import msgspec

from ulak.spine import probe
from ulak.spine.store import AfterCommit, Tx, Verb
from ulak.stores.writer.session import BatchFailed, CommitUnknown, Fatal, Session, SessionLost


class Item(msgspec.Struct, eq=False):
    """One caller's part of a batch."""

    verb: Verb[Any, Any]
    value: Any
    future: asyncio.Future[Any]
    answer: Any = None


TRIES = 40  # a session gives up on contention within half of them; using them all up means that the database is lost

_verb, _value = attrgetter("verb"), attrgetter("value")


class Raised:
    """An item's failure, kept apart from an answer."""

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.error = error


class Batches:
    """Runs batches on one session, each to a known end."""

    def __init__(
        self,
        session: Session,
        take_latecomers: Callable[[list[Item]], list[Item]],
        next_piggyback: Callable[[], Item | None],
        given_up: Callable[[], bool],
    ) -> None:
        self._session = session
        self._take_latecomers = take_latecomers
        self._next_piggyback = next_piggyback
        self._given_up = given_up
        self._tx: Tx | None = None
        self.reruns = 0

    def run(self, batch: list[Item]) -> AfterCommit:
        """Run the batch to a known end, whatever happens to the session."""
        self._session.turn_to_next_batch()
        for _ in range(TRIES):
            if self._given_up():
                raise Fatal("the store was closed")
            try:
                return self._attempt(batch)
            except CommitUnknown:
                self._session.reopen()
                if self._session.committed():
                    return AfterCommit() if self._tx is None else self._tx.after_commit
            except SessionLost:
                self._session.reopen()
        raise Fatal("the database went away again and again during one batch")

    def _attempt(self, batch: list[Item]) -> AfterCommit:
        try:
            return self._run_bare(batch)
        except (CommitUnknown, SessionLost, BatchFailed, Fatal):
            raise
        except BaseException as error:  # noqa: BLE001 - any unit may raise anything; the batch runs again
            self._undo(error)
        self.reruns += 1
        return self._run_isolated(batch)

    def _undo(self, error: BaseException) -> None:
        if self._session.lost(error):
            raise SessionLost(str(error)) from error
        self._session.rollback()

    def _run_bare(self, batch: list[Item]) -> AfterCommit:
        tx = self._tx = self._session.begin()
        _run_all(tx, batch)
        _run_all(tx, self._take_latecomers(batch))
        if tx.after_commit.ready and (piggyback := self._next_piggyback()) is not None:
            batch.append(piggyback)  # it shares the batch's fate from here on
            piggyback.answer = piggyback.verb.run(tx, [piggyback.value])[0]
        probe.reach("writer.before_commit")
        self._session.commit(tx)
        return tx.after_commit

    def _begin_isolated(self) -> Tx:
        """Begin, without the locks that a batch takes first if they stayed out of reach for all its tries."""
        try:
            return self._session.begin()
        except (CommitUnknown, SessionLost, BatchFailed, Fatal):
            raise
        except BaseException as error:  # noqa: BLE001 - no item has run yet, so none is to blame
            self._undo(error)
        return self._session.begin()

    def _run_isolated(self, batch: list[Item]) -> AfterCommit:
        tx = self._tx = self._begin_isolated()
        for item in batch:
            before = tx.after_commit.copy()
            self._session.savepoint()
            try:
                item.answer = item.verb.run(tx, [item.value])[0]
                msgspec.msgpack.encode(
                    tx.after_commit.events[len(before.events) :]
                )  # one that can't be written fails alone
                self._session.release()
            except (CommitUnknown, SessionLost, BatchFailed, Fatal):
                raise
            except BaseException as error:
                if self._session.lost(error):
                    raise SessionLost(str(error)) from error
                self._session.rollback_to()
                tx.after_commit = before
                item.answer = Raised(self.failure(error))
        self._session.commit(tx)
        return tx.after_commit

    def failure(self, error: BaseException) -> Exception:
        """As its caller can take it: a future refuses StopIteration, and SystemExit would end the loop."""
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            return self._session.translate(error)
        return RuntimeError(f"the unit raised {error!r}")


def _run_all(tx: Tx, items: list[Item]) -> None:
    for verb, group in _by_verb(items).items():
        for item, answer in zip(group, verb.run(tx, list(map(_value, group))), strict=True):
            item.answer = answer


def _by_verb(batch: list[Item]) -> dict[Verb[Any, Any], list[Item]]:
    groups: defaultdict[Verb[Any, Any], list[Item]] = defaultdict(list)
    for verb, neighbours in groupby(batch, _verb):
        groups[verb] += neighbours
    return groups
