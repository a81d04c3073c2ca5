"""Kills processes at random moments, starts new ones, lets the last one drain, and has the ledger judge."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.crash.audit import audit, living
from tests.crash.ledger import Ledger, Verdict
from tests.crash.nursery import Child, Nursery
from tests.crash.wire import Life

SHORTEST_SECONDS, MAX_SECONDS = 0.05, 0.6
FREEZE_SHARE = 0.03
FROZEN_SECONDS = 1.8  # longer than the lease: others take its work, and it comes back with results that are stale
PRODUCERS = 3
IDLE_SECONDS = 30.0  # far beyond every pause that a worker makes


@dataclass
class Killer:
    """One run on one store. On PostgreSQL two processes live at once, and some are frozen instead of killed."""

    nursery: Nursery
    address: str
    seed: int
    ledger: Ledger = field(default_factory=Ledger)
    kills: int = 0
    freezes: int = 0

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._lives = self._seen = 0
        self._shared = self.address.startswith("postgresql:")

    def run(self, kills: int, tell: Callable[[Killer], None] = lambda killer: None) -> Verdict:
        with self.nursery.heard_by(self.ledger.hear):
            living = [self._start() for _ in range(2 if self._shared else 1)]
            while self.kills < kills:
                self._listen_a_while()
                if self._shared and self._random.random() < FREEZE_SHARE:
                    self._freeze(self._random.choice(living))
                victim = living.pop(self._random.randrange(len(living)))
                self._kill(victim)
                living.append(self._start())
                tell(self)
            self.nursery.kill_all()
            return self.drain()

    def drain(self) -> Verdict:
        """Let a last process finish everything, then compare."""
        self._lives += 1
        last = self.nursery.start(Life(self.address, self._lives, self.seed, until="drained"))
        while not self.nursery.listen(lambda: last.status is not None, seconds=IDLE_SECONDS):
            moved, self._seen = len(self.ledger.ended) > self._seen, len(self.ledger.ended)
            if not moved:
                raise TimeoutError(f"process {last.pid} does nothing, but there is work: {living(self.address)}")
        return self.ledger.judge(audit(self.address))

    def _start(self) -> Child:
        self._lives += 1
        return self.nursery.start_ready(Life(self.address, self._lives, self.seed, PRODUCERS))

    def _listen_a_while(self) -> None:
        self.nursery.listen(seconds=self._random.uniform(SHORTEST_SECONDS, MAX_SECONDS))

    def _kill(self, child: Child) -> None:
        self.nursery.kill(child)
        assert child.was_killed, f"child {child.pid} ended before it was killed: {child.status}"
        self.kills += 1

    def _freeze(self, child: Child) -> None:
        self.nursery.signal(child, signal.SIGSTOP)
        self.nursery.listen(seconds=FROZEN_SECONDS)
        self.nursery.signal(child, signal.SIGCONT)
        self.nursery.listen(seconds=MAX_SECONDS)
        self.freezes += 1
