"""The workers: how many of each kind, the spare, births, deaths, replacements. Called under the dispatcher's lock."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from itertools import count

from ulak.backoff import Backoff
from ulak.compute.cpus import usable_cpus
from ulak.compute.hand import Hand
from ulak.compute.model import TaskType
from ulak.compute.process import NurseryLink
from ulak.compute.runner import Role
from ulak.compute.settings import ComputeSettings

_BARREN_SECONDS = 1.0  # a worker that dies younger, without having begun a task, says that starting is what fails
_MOST_LESSONS = 32
_LONGEST_LESSON_BYTES = 512  # a function's name is shorter; a pickled object may be anything
_PREFIX = {TaskType.CPU_BOUND: "cpu", TaskType.IO_BOUND: "io"}


class Fleet:
    def __init__(self, settings: ComputeSettings, initializer: bytes | None) -> None:
        self._settings, self._initializer = settings, initializer
        self._targets = {
            TaskType.CPU_BOUND: settings.cpu_workers or usable_cpus(),
            TaskType.IO_BOUND: settings.io_workers,
        }
        self._tokens = count(1)
        self._by_token: dict[int, Hand] = {}
        self._by_pid: dict[int, Hand] = {}
        self._spares: list[Hand] = []
        self._barren = 0
        # What has run well on CPU workers: spares load it before they are needed, as imports may take longer than all
        # else. Not before an initializer, which may have to come first; and never again when a spare has died of it.
        self._lessons: dict[bytes, None] = {}
        self._teaches = initializer is None
        self._has_taught = False
        self._patience = Backoff(first_seconds=0.05, cap_seconds=5.0, jitter=0.0)
        self.crews: dict[TaskType, list[Hand]] = {}
        self.nursery: NurseryLink | None = None
        self.restarts = 0
        self.paused = False  # after too many deaths at birth

    def open_nursery(self) -> NurseryLink:
        self.nursery = NurseryLink()
        return self.nursery

    def fill(self, kind: TaskType, now: float) -> list[Hand]:
        """Bring a crew to its strength; returns who is new in it."""
        crew = self.crews.setdefault(kind, [])
        new: list[Hand] = []
        while sum(not hand.retiring for hand in crew) < self._targets[kind]:
            hand = self._spares.pop(0) if self._has_spare_for(kind) else self._order(now)
            self._assign(hand, kind, crew)
            crew.append(hand)
            new.append(hand)
        return new

    def _has_spare_for(self, kind: TaskType) -> bool:
        """What spares load is loaded as for a CPU worker, with numeric libraries on one thread."""
        return bool(self._spares) and (kind is TaskType.CPU_BOUND or not self._has_taught)

    def stock(self, now: float) -> None:
        """Have the spares ready again."""
        while len(self._spares) < self._settings.spare_workers:
            spare = self._order(now)
            if self._lessons:
                spare.write(list(self._lessons))
            self._spares.append(spare)

    def teach(self, name: bytes) -> None:
        """Have the spares, those to come too, get to know a function by its pickled name."""
        if not self._teaches or len(name) > _LONGEST_LESSON_BYTES or len(self._lessons) >= _MOST_LESSONS:
            return
        if name not in self._lessons:
            self._lessons[name] = None
            self._has_taught = True
            for spare in self._spares:
                spare.write([name])

    def _stop_teaching(self) -> None:
        self._teaches = False
        self._lessons.clear()

    def _order(self, now: float) -> Hand:
        assert self.nursery is not None
        hand = Hand(next(self._tokens), self.nursery, now)
        self._by_token[hand.token] = hand
        return hand

    def _assign(self, hand: Hand, kind: TaskType, crew: list[Hand]) -> None:
        taken = {other.name for other in crew if not other.retiring}
        name = next(name for name in (f"{_PREFIX[kind]}-{place}" for place in count()) if name not in taken)
        settings = self._settings
        threads = settings.io_threads if kind is TaskType.IO_BOUND else 0
        role = Role(name, threads, settings.script_root, settings.capture_bytes, self._initializer, settings.cpu_nice)
        hand.assume(kind, role)

    def born(self, token: int, pid: int) -> Hand | None:
        hand = self._by_token.get(token)
        if hand is not None:
            hand.pid = pid
            self._by_pid[pid] = hand
        return hand

    def find(self, pid: int) -> Hand | None:
        return self._by_pid.get(pid)

    def find_token(self, token: int) -> Hand | None:
        return self._by_token.get(token)

    def remove(self, hand: Hand, now: float, *, died_at_work: bool) -> None:
        self._by_token.pop(hand.token, None)
        if hand.pid is not None:
            self._by_pid.pop(hand.pid, None)
        if hand in self._spares and self.nursery is not None:  # not when all died with the nursery
            self._stop_teaching()
        for group in (self._spares, *self.crews.values()):
            with contextlib.suppress(ValueError):
                group.remove(hand)
        if hand.ending is None and not hand.retiring:
            self.restarts += 1
            was_fit = died_at_work or hand.done > 0 or now - hand.born_at >= _BARREN_SECONDS
            self._barren = 0 if was_fit else self._barren + 1

    def pause_seconds(self) -> float:
        """How long to wait before the next start, when starting itself seems to fail."""
        return 0.0 if self._barren < 8 else self._patience.delay_seconds(self._barren - 7)

    @property
    def spare_count(self) -> int:
        return len(self._spares)

    def everyone(self) -> list[Hand]:
        return list(self._by_token.values())

    def workers(self) -> Iterator[Hand]:
        for crew in self.crews.values():
            yield from crew

    def lose_nursery(self) -> None:
        """It died, and by the kernel's hand its workers with it; what they had started goes now."""
        for hand in self.everyone():
            if hand.pid is not None:
                with contextlib.suppress(OSError):
                    os.killpg(hand.pid, signal.SIGKILL)
        if self.nursery is not None:
            self.nursery.close()
            self.nursery = None
