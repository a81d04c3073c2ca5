"""The room's ledger: accepted = delivered + failed + dead + held + cancelled + expired + waiting, at every moment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ulak.notify.model import KIND_PREFIX
from ulak.spine.job import JobEvent


@dataclass(frozen=True, slots=True)
class Balance:
    """`failed` could never be delivered, `dead` was given up on, `held` waits for a person; together: dead letters."""

    accepted: int
    delivered: int
    failed: int
    dead: int
    held: int
    cancelled: int
    expired: int
    waiting: int

    @property
    def difference(self) -> int:
        """Return how many are accounted for nowhere. Anything but 0 is a defect."""
        buried = self.failed + self.dead + self.held
        return self.accepted - self.delivered - buried - self.cancelled - self.expired - self.waiting


def balance(tally: Mapping[tuple[str, str], int], live: Mapping[tuple[str, str], int]) -> Balance:
    """From the counts by (word, kind) and the unfinished jobs by (kind, state), taken in one read."""
    said: Counter[str] = Counter()
    for (word, kind), number in tally.items():
        if kind.startswith(KIND_PREFIX):
            said[word] += number
    return Balance(
        accepted=said[JobEvent.ACCEPTED],
        delivered=said[JobEvent.DONE],
        failed=said[JobEvent.FAILED],
        dead=said[JobEvent.DEAD] - said[JobEvent.REDRIVEN] - said[JobEvent.FAILED] - said[JobEvent.HELD],
        held=said[JobEvent.HELD],
        cancelled=said[JobEvent.CANCELLED],
        expired=said[JobEvent.EXPIRED],
        waiting=sum(number for (kind, _), number in live.items() if kind.startswith(KIND_PREFIX)),
    )
