"""The verbs with which jobs come in: enqueue one or many, put, offer, and units of your own. `Ulak` has them."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, TypeVar

import msgspec

from ulak.errors import Invalid
from ulak.spine.handler import Handlers
from ulak.spine.job import NewJob, OnUncertain, Priority, Row
from ulak.spine.loops.loops import Loops
from ulak.spine.store import Store, Tx
from ulak.spine.telemetry import Telemetry
from ulak.spine.trace import with_trace
from ulak.spine.units.enqueue import ENQUEUE_ONE, Full
from ulak.spine.validate import is_number, to_row, to_rows

P = ParamSpec("P")
R = TypeVar("R")


class Enqueuer(ABC):
    """Accepts jobs into an open store. The payload of a kind that has a typed handler here is checked first."""

    handlers: Handlers
    telemetry: Telemetry

    @property
    @abstractmethod
    def store(self) -> Store: ...

    @property
    @abstractmethod
    def loops(self) -> Loops: ...

    async def enqueue(
        self,
        kind: str,
        payload: Any = None,
        *,
        priority: Priority = Priority.NORMAL,
        key: str | None = None,
        slots: int = 1,
        delay_seconds: float | None = None,
        due_at: datetime | None = None,
        expires_at: datetime | None = None,
        unique_key: str | None = None,
        continuation: str | None = None,
        on_uncertain: OnUncertain = "resend",
        connection: Any = None,
    ) -> int:
        """Accept a job durably and answer its id. At the kind's bound: wait or refuse, by its policy.

        With `connection` (PostgreSQL), the job joins the caller's open transaction and exists when that commits.
        """
        if (form := self.handlers.form_of(kind)) is not None:
            payload = form.accept(payload)
        job = NewJob(
            kind,
            payload,
            priority,
            key,
            slots,
            delay_seconds,
            due_at,
            expires_at,
            unique_key,
            continuation,
            on_uncertain,
        )
        if connection is not None:
            return (await self.store.enqueue_in(connection, self._rows([job])))[0]
        store, gate = self.store, self.loops.gate
        now = store.clock.now()
        row = self.telemetry.tracer.stamped(to_row(job, store.ids.take(now), now))
        # Without a coroutine in between, as most jobs come this way.
        verdict = await gate.at_once(row, ENQUEUE_ONE, row)
        return await gate.in_line(row, ENQUEUE_ONE, row, 1) if isinstance(verdict, Full) else verdict

    async def enqueue_many(self, jobs: Iterable[NewJob], *, connection: Any = None) -> list[int]:
        """Accept all jobs in one transaction, or none. A job whose unique key is taken answers the holder's id."""
        rows = self._rows(self._checked(jobs))
        if not rows:
            return []
        if connection is not None:
            return await self.store.enqueue_in(connection, rows)
        return await self.loops.gate.enqueue(rows)

    async def put(self, *jobs: NewJob) -> list[int]:
        """Accept jobs; at the bound wait for capacity, whatever the kind's policy."""
        rows = self._rows(self._checked(jobs))
        return await self.loops.gate.put(rows) if rows else []

    async def offer(
        self, kind: str, payload: Any = None, *, timeout_seconds: float = 0.0, **options: Any
    ) -> int | None:
        """Accept a job if there is capacity, or comes to be within the time; None when not."""
        if not is_number(timeout_seconds):
            raise Invalid(f"timeout_seconds must be a number of at least 0, not {timeout_seconds!r:.50}")
        rows = self._rows(self._checked([NewJob(kind, payload, **options)]))
        ids = await self.loops.gate.offer(rows, timeout_seconds)
        return None if ids is None else ids[0]

    def _rows(self, jobs: Iterable[NewJob]) -> list[Row]:
        return self.telemetry.tracer.stamped_all(to_rows(jobs, self.store.ids, self.store.clock.now()))

    def _checked(self, jobs: Iterable[NewJob]) -> Iterable[NewJob]:
        """Check payloads by their handlers' forms. Anything but a list of jobs is left as it is, for the next check."""
        if not self.handlers.has_forms or not isinstance(jobs, Iterable):
            return jobs
        return [self._fitted(job) for job in jobs]

    def _fitted(self, job: NewJob) -> NewJob:
        form = self.handlers.form_of(getattr(job, "kind", None))
        return job if form is None else msgspec.structs.replace(job, payload=form.accept(job.payload))

    async def write(self, unit: Callable[Concatenate[Tx, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Run a function in a transaction of Ulak's store: atomic, database only, and re-runnable."""
        if inspect.iscoroutinefunction(unit):
            raise Invalid(f"a unit of work is a plain function, unit(tx, …), not {unit!r:.50}; nothing of it was run")
        return await self.store.write(with_trace(unit, self.telemetry.tracer.current()), *args, **kwargs)
