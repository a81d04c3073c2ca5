"""What waits for a worker: one line per class, inside it one per priority, with a share for the lower ones."""

from __future__ import annotations

from collections import deque

from ulak.compute.work import ASIDE, QUEUED, Work

PRIORITIES = 4
_SHARE = 8  # every eighth place goes to the lower priorities in turn, so that none starves


class Line:
    """Cancelled work stays where it is and is skipped; `depth` counts only what still waits."""

    __slots__ = ("_levels", "_picks", "_turn", "delayed", "depth", "suspects")

    def __init__(self) -> None:
        self._levels: tuple[deque[Work], ...] = tuple(deque() for _ in range(PRIORITIES))
        self._picks = 0
        self._turn = 0
        self.depth = 0
        self.suspects: deque[Work] = deque()  # not in the depth: they are few and were accepted before
        self.delayed: set[Work] = set()  # wait for their next attempt

    def put(self, work: Work) -> None:
        self._levels[work.options.priority].append(work)
        self.depth += 1

    def put_back(self, works: list[Work]) -> None:
        """What was not run goes to where it was: the front."""
        for work in reversed(works):
            self._levels[work.options.priority].appendleft(work)
        self.depth += len(works)

    def take(self, count: int) -> list[Work]:
        taken: list[Work] = []
        while len(taken) < count and self.depth:
            work = self._next()
            if work.state == QUEUED:
                taken.append(work)
                self.depth -= 1
        return taken

    def _next(self) -> Work:
        self._picks += 1
        if self._picks % _SHARE == 0:
            self._turn = (self._turn + 1) % PRIORITIES
            if self._levels[self._turn]:
                return self._levels[self._turn].popleft()
        for level in self._levels:
            if level:
                return level.popleft()
        raise AssertionError("a line with depth has no work")  # depth counts what the levels hold

    def drain(self) -> list[Work]:
        """Everything that waits, taken out."""
        places: tuple[deque[Work] | set[Work], ...] = (self.suspects, self.delayed, *self._levels)
        works = [work for place in places for work in place if work.state in (QUEUED, ASIDE)]
        for place in places:
            place.clear()
        self.depth = 0
        return works
