"""Claiming: a claim is also the start mark, because only jobs that can start now are claimed.

Shares instead of strict priority: an eighth of each claim rotates over the lower levels, so LOW still moves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
from msgspec.structs import replace

from ulak.spine.event import events_for
from ulak.spine.job import SUSPECT_LEVEL, JobEvent, Lease
from ulak.spine.query import Queries
from ulak.spine.rotation import Rotation
from ulak.spine.store import Tx, Verb, WriterQueue
from ulak.spine.units.rate import lock_budgets, refund, spend
from ulak.spine.units.settle import finish_expired

sql = Queries("ulak.spine")

# With more levels to look at than this, a claim asks first which of them have work. A worker looks at all levels of all
# its kinds once a second: 145 statements otherwise, each of which gives the interpreter lock away or is a round trip.
FEW_LEVELS = 4
STARTED = JobEvent.STARTED.value


class Want(msgspec.Struct, frozen=True):
    """Capacity for one kind: how many, at which levels there may be work, and its rate if it has one."""

    kind: str
    free: int
    levels: tuple[int, ...]
    rate_per_second: float | None = None
    lane: str = "async"


class Demand(msgspec.Struct, frozen=True):
    """How much a worker can start: per kind, per lane, and in all. A kind without work takes no other's share."""

    owner: int
    wants: tuple[Want, ...]
    free: int
    lanes: dict[str, int]


@dataclass(slots=True)
class Claimed:
    """The leases of a claim, the levels that it found to be empty, and how many jobs were too old to run."""

    leases: list[Lease] = field(default_factory=list)
    dry: list[tuple[str, int]] = field(default_factory=list)
    rate_wait_seconds: dict[str, float] = field(default_factory=dict)
    expired: int = 0


def _claim(tx: Tx, demand: Demand, rotations: dict[str, Rotation]) -> Claimed:
    answer = Claimed()
    left, lanes = demand.free, dict(demand.lanes)
    wants = _without_idle(tx, demand.wants, answer)
    lock_budgets(tx, [want.kind for want in wants if want.rate_per_second is not None])
    for want in wants:
        free = min(want.free, left, lanes[want.lane])
        if free <= 0:
            continue
        wait = 0.0
        if want.rate_per_second is not None:
            free, wait = spend(tx, want.kind, want.rate_per_second, free)
        unused = _claim_kind(tx, demand.owner, want, free, rotations.setdefault(want.kind, Rotation()), answer)
        if unused and want.rate_per_second is not None:
            refund(tx, want.kind, unused)
        elif wait:  # the next claim can use the tokens that are left over
            answer.rate_wait_seconds[want.kind] = wait
        left -= free - unused
        lanes[want.lane] -= free - unused
    tx.after_commit.ready.difference_update(answer.dry)  # jobs that are claimed already need not wake anybody
    _note_started(tx, answer)
    return answer


def _without_idle(tx: Tx, wants: Sequence[Want], answer: Claimed) -> Sequence[Want]:
    """Leave out the kinds, and of the others the levels, that have nothing ready."""
    levels = [(want.kind, prio) for want in wants for prio in want.levels]
    if len(levels) <= FEW_LEVELS:
        return wants
    ready = tx.ready_levels(levels)
    answer.dry += [level for level in levels if level not in ready]
    left = ((want, tuple(prio for prio in want.levels if (want.kind, prio) in ready)) for want in wants)
    return [replace(want, levels=prios) for want, prios in left if prios]


def _claim_kind(tx: Tx, owner: int, want: Want, free: int, rotation: Rotation, answer: Claimed) -> int:
    level, share = rotation.favour(free, want.levels)
    for prio, number in [(level, share), *((prio, free) for prio in want.levels)]:
        limit = min(number, free)
        if limit <= 0 or (want.kind, prio) in answer.dry:
            continue
        taken = tx.claim(owner, want.kind, prio, limit)
        answer.leases.extend(taken)
        free -= len(taken)
        if len(taken) < limit:
            answer.dry.append((want.kind, prio))
    return free


def _note_started(tx: Tx, answer: Claimed) -> None:
    # Too old at its start, which is not before its due time.
    late = [one for one in answer.leases if one.expires_at is not None and one.expires_at <= max(tx.now, one.due_at)]
    if late:
        finish_expired(tx, late)
        answer.expired = len(late)
        answer.leases[:] = [lease for lease in answer.leases if lease not in late]
    tx.after_commit.events += events_for(STARTED, answer.leases, "attempt")


class ClaimVerbs:
    """The claim verb with the memory of one worker's rotations."""

    def __init__(self) -> None:
        self._rotations: dict[str, Rotation] = {}
        self.verb: Verb[Demand, Claimed] = Verb(
            WriterQueue.CLAIM, lambda tx, items: [self.claim(tx, demand) for demand in items]
        )

        self.piggyback: Verb[Demand, Claimed] = Verb(
            WriterQueue.CLAIM, lambda tx, items: [self._claim_fresh(tx, demand) for demand in items]
        )

    def claim(self, tx: Tx, demand: Demand) -> Claimed:
        """Inside a transaction that may have done something else before."""
        return _claim(tx, demand, self._rotations)

    def _claim_fresh(self, tx: Tx, demand: Demand) -> Claimed:
        """Claim at the levels where this transaction has made jobs ready, whatever levels the demand names."""
        hot: defaultdict[str, list[int]] = defaultdict(list)
        for kind, prio in sorted(tx.after_commit.ready):
            if prio != SUSPECT_LEVEL:  # suspects have a claim of their own, whose claimer must still be woken
                hot[kind].append(prio)
        wants = (replace(want, levels=tuple(hot[want.kind])) for want in demand.wants if want.kind in hot)
        return self.claim(tx, replace(demand, wants=tuple(wants)))


@dataclass(frozen=True, slots=True)
class SuspectDemand:
    """Jobs that were running when a process died. With `alone`, those that must have the process to themselves."""

    owner: int
    kinds: tuple[str, ...]
    number: int
    alone: bool
    rates: Mapping[str, float] = field(default_factory=dict)  # per second, of the kinds that have one


ALONE_FROM_CRASHES = 2


def _claim_suspects(tx: Tx, demand: SuspectDemand) -> list[Lease]:
    rates = {kind: demand.rates[kind] for kind in demand.kinds if kind in demand.rates}
    answer = Claimed(_take_suspects(tx, demand, [kind for kind in demand.kinds if kind not in rates], demand.number))
    lock_budgets(tx, rates)
    for kind, rate in rates.items():
        free, _ = spend(tx, kind, rate, demand.number - len(answer.leases))
        taken = _take_suspects(tx, demand, [kind], free)
        if len(taken) < free:
            refund(tx, kind, free - len(taken))
        answer.leases += taken
    _note_started(tx, answer)
    return answer.leases


def _take_suspects(tx: Tx, demand: SuspectDemand, kinds: list[str], number: int) -> list[Lease]:
    if not kinds or number <= 0:
        return []
    least, most = (ALONE_FROM_CRASHES, 1_000_000) if demand.alone else (1, ALONE_FROM_CRASHES - 1)
    parameters = {"owner": demand.owner, "kinds": kinds, "n": number, "least": least, "most": most, "now": tx.now}
    return sorted(Lease(*row) for row in tx.rows(sql.claim_suspects, **parameters))


def alone_is_waiting(tx: Tx, kinds: Iterable[str]) -> bool:
    """Whether a job of these kinds must have a process to itself."""
    return not {kind for (kind,) in tx.rows(sql.find_alone, least=ALONE_FROM_CRASHES)}.isdisjoint(kinds)


CLAIM_SUSPECTS: Verb[SuspectDemand, list[Lease]] = Verb(
    WriterQueue.CLAIM, lambda tx, items: [_claim_suspects(tx, demand) for demand in items]
)
