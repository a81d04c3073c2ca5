"""Steps that this process has just committed, for the jobs that it is about to run: a read less for each.

Only a step whose target was resolved in that commit is remembered. A change of the directory forgets all, and a run
that is stopped is forgotten; where other processes change them too, a moment does.
"""

from __future__ import annotations

from ulak.actions.decide import Resolution
from ulak.actions.model import ActionRun, ActionStep, PlanStep, StepTarget
from ulak.actions.steps.cases import Case

MAX_REMEMBERED = 20_000
SHARED_AGE_MILLIS = 1_000  # where other processes write to the same store
MAX_AGE_MILLIS = 60_000


class FreshCases:
    def __init__(self) -> None:
        self._known: dict[int, tuple[int, Case]] = {}
        self._stopped: dict[int, None] = {}

    def put(self, job: int, now: int, run: ActionRun, step: PlanStep, row: ActionStep, target: StepTarget) -> None:
        """Called inside a unit: if that is undone, nobody ever asks for this job."""
        if len(self._known) >= MAX_REMEMBERED:
            self._known.clear()
        self._known[job] = (now, Case(run, step, row, target, Resolution()))

    def take(self, job: int, now: int, *, shared: bool) -> Case | None:
        made_at, case = self._known.pop(job, (0, None))
        if case is None or case.run.id in self._stopped:
            return None
        return case if now - made_at <= (SHARED_AGE_MILLIS if shared else MAX_AGE_MILLIS) else None

    def clear(self) -> None:
        """The directory changes: whoever was resolved before is resolved again. Called inside that unit."""
        self._known.clear()

    def stop(self, run: int) -> None:
        if len(self._stopped) >= MAX_REMEMBERED:
            self._stopped.clear()
        self._stopped[run] = None
