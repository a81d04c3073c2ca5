"""The outside count: what was acknowledged, what ran, what the store says in the end, and whether they agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tests.crash.audit import Audit
from tests.crash.wire import RETRIED, WORKED, Accepted, Began, Ended, Record, Refused


class Run(NamedTuple):
    epoch: int
    crashes: int
    at: int


@dataclass
class Ledger:
    """Hears every record; `judge` compares with the store."""

    tokens: dict[int, int] = field(default_factory=dict)  # acknowledged id -> token
    refused: dict[int, str] = field(default_factory=dict)  # token -> outcome
    runs: defaultdict[int, list[Run]] = field(default_factory=lambda: defaultdict(list))
    ended: dict[tuple[int, int], str] = field(default_factory=dict)
    keys: defaultdict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    pids: Counter[int] = field(default_factory=Counter)
    answered_twice: int = 0  # an id that was the answer to two enqueues: one of the jobs is not there

    def hear(self, record: Record) -> None:
        match record:
            case Began():
                self._began(record)
            case Ended():
                self.ended[record.id, record.epoch] = record.outcome
            case Accepted():
                self.answered_twice += sum(identifier in self.tokens for identifier in record.ids)
                self.tokens.update(zip(record.ids, record.tokens, strict=True))
            case Refused():
                self.refused.update(dict.fromkeys(record.tokens, record.outcome))

    def _began(self, record: Began) -> None:
        runs = self.runs[record.id]
        if record.key is not None and record.kind != "bulkhead" and not runs:  # where no order is promised
            self.keys[record.key].append((record.at, record.id))
        runs.append(Run(record.epoch, record.crashes, record.at))
        self.pids[record.pid] += 1

    @property
    def second_runs(self) -> int:
        return sum(map(len, self.runs.values())) - len(self.runs)

    def judge(self, audit: Audit) -> Verdict:
        worked = {identifier for (identifier, _), outcome in self.ended.items() if outcome == WORKED}
        steps = Counter(step for identifier in self.runs for step in self._steps(identifier))
        stale = [
            one.id
            for one in audit.past
            if one.epoch is not None and one.epoch < max((run.epoch for run in self.runs[one.id]), default=0)
        ]
        kept = {one.id for one in audit.past} | audit.dead
        unacknowledged = len(kept - self.tokens.keys()) - audit.owed
        refused_for_sure = {token for token, outcome in self.refused.items() if outcome == "no"}
        return Verdict(
            accepted=len(self.tokens),
            unacknowledged=unacknowledged,
            ran=len(self.tokens.keys() & worked),
            lost=sorted(self.tokens.keys() - (worked & kept) - audit.dead),
            second_runs=self.second_runs,
            explained=steps["uncertain"],
            asked_for=steps["asked"],
            unexplained=self._unexplained(audit),
            settled_without_run=sorted(kept - worked - audit.dead),
            stale_settles=stale,
            answered_twice=self.answered_twice,
            out_of_order=sum(map(_disorder, self.keys.values())),
            kept_twice=audit.kept_twice,
            kept_though_refused=len(audit.tokens & refused_for_sure),
            broken_chains=audit.broken_chains,
            gaps_in_log=audit.gaps,
            accepted_events_wrong=audit.accepted_events_wrong,
            unbalanced=audit.unbalanced,
            integrity=audit.integrity,
        )

    def _unexplained(self, audit: Audit) -> list[str]:
        """Each job with such a step: its runs as they were heard, and its timeline in the store."""
        wrong = {identifier for identifier in self.runs if "unexplained" in self._steps(identifier)}
        notes = {one.id: f"{one.kind} {one.note}" for one in audit.past if one.id in wrong}
        return [f"{one}: {self._told(one)}; {notes.get(one, 'not kept')}" for one in sorted(wrong)]

    def _told(self, identifier: int) -> list[tuple[Run, str | None]]:
        return [(run, self.ended.get((identifier, run.epoch))) for run in sorted(self.runs[identifier])]

    def _steps(self, identifier: int) -> list[str]:
        """Why each further run of a job came to be: the one before was marked uncertain, or asked for it."""
        runs = sorted(self.runs[identifier])
        return [self._step(identifier, before, after) for before, after in pairwise(runs)]

    def _step(self, identifier: int, before: Run, after: Run) -> str:
        if before.epoch == after.epoch:
            return "unexplained"
        if after.crashes > before.crashes:
            return "uncertain"
        return "asked" if self.ended.get((identifier, before.epoch)) == RETRIED else "unexplained"


def _disorder(first_runs: list[tuple[int, int]]) -> int:
    ids = [identifier for _, identifier in sorted(first_runs)]
    return sum(later < earlier for earlier, later in pairwise(ids))


@dataclass(frozen=True)
class Verdict:
    """Figures first, then what must be empty, zero or ok."""

    accepted: int
    unacknowledged: int
    ran: int
    second_runs: int
    explained: int
    asked_for: int
    lost: list[int]
    unexplained: list[str]
    settled_without_run: list[int]
    stale_settles: list[int]
    answered_twice: int
    out_of_order: int
    kept_twice: int
    kept_though_refused: int
    broken_chains: int
    gaps_in_log: int
    accepted_events_wrong: int
    unbalanced: dict[str, str]
    integrity: str

    FIGURES = ("accepted", "unacknowledged", "ran", "second_runs", "explained", "asked_for")

    @property
    def violations(self) -> dict[str, object]:
        found = {name: value for name, value in vars(self).items() if name not in self.FIGURES and value}
        if found.get("integrity") == "ok":
            del found["integrity"]
        return found
