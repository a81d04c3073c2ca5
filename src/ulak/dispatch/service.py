"""`ulak.dispatch`: the verbs of the room, for helpers and their positions, tasks and answers, and explanations."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from typing import Any, Literal
from uuid import UUID

from ulak import codec
from ulak.dispatch import forms, views
from ulak.dispatch.acts import Acts, find_first
from ulak.dispatch.arguments import check_id, check_limit, mark_of, one_of
from ulak.dispatch.command import (
    Answer,
    CommandAnswer,
    Forget,
    HelperCommand,
    HelperVerdict,
    Known,
    Mismatched,
    Missing,
    Move,
    Open,
    Pull,
    Put,
    TaskVerdict,
    TaskView,
    Withdraw,
)
from ulak.dispatch.depth import Depth
from ulak.dispatch.fairness import Figures, read_figures
from ulak.dispatch.forms import HelperForm, NamedPosition, PositionForm, TaskForm
from ulak.dispatch.model import Contact, Helper, HelperStatus, HelpTask, TaskState
from ulak.dispatch.nearby.bbox import Box
from ulak.dispatch.nearby.geo import to_nano
from ulak.dispatch.policy import Policy
from ulak.dispatch.positions import MIN_SLICE_ROWS, SLICE_SHARE, TOGETHER, Hints, flush
from ulak.dispatch.progress import TaskProgress
from ulak.dispatch.records import known_helpers
from ulak.dispatch.refusal import refused
from ulak.dispatch.views import OpenOffer, SearchView, TaskFilter, TaskStep
from ulak.errors import Conflict, Invalid, NotFound, Refused
from ulak.settings.dispatch import Dispatch as Section
from ulak.spine.loops.bulk import slices_written
from ulak.spine.store import Store

REQUEST = "dispatch.task"  # in traces: the span under which all of a task stands


class Dispatch:
    def __init__(
        self,
        section: Section,
        acts: Acts,
        open_store: Callable[[], Store],
        check_contact: Callable[[Contact], None],
        requested: Callable[[str], str | None],
    ) -> None:
        self._section = section
        self.policy: Policy = acts.policy
        self._store = open_store
        self._reachable = forms.reachable(check_contact)
        self._radius = forms.radius_within(section.max_radius_meters)
        self._requested = requested
        self.depth = Depth(section.capacity)
        self.progress = TaskProgress(acts, open_store, self.depth)
        self._flushing = asyncio.Lock()
        self.hints = Hints(lambda: self._store().clock)

    # Helpers

    async def put_helper(self, helper: str, form: dict[str, Any] | None = None, **fields: Any) -> Helper:
        """Create a helper or change it; a field that is left out keeps its value. Fields as in HTTP, or by keyword."""
        check_id(helper)
        document = forms.document_with(form, fields)
        given = forms.read_form(HelperForm, document, forms.both_or_none, self._reachable)
        now = self._store().clock.now()
        place = None
        if given.latitude is not None and given.longitude is not None:
            place = forms.place_at(given.latitude, given.longitude, now)
        skills = None if given.skills is None else tuple(sorted(set(given.skills)))
        contact = forms.contact_of(given.contact)
        command = Put(helper, given.name, given.is_active, place, skills, given.language, contact)
        return (await self._of_helper(command)).helper

    async def helper(self, helper: str) -> Helper:
        found = await self._store().read(views.read_helper, helper)
        if found is None:
            raise _no_helper(helper)
        return found

    async def helpers(
        self,
        *,
        status: HelperStatus | str | None = None,
        bbox: Box | None = None,
        after: str | None = None,
        limit: int = 50,
    ) -> list[Helper]:
        """By id; `after` is the last id of the page before."""
        wanted = None if status is None else one_of(HelperStatus, "status", status)
        return await self._store().read(views.list_helpers, self.policy, wanted, bbox, after or "", check_limit(limit))

    async def forget_helper(self, helper: str) -> None:
        verdict = await self._of_helper(Forget(helper))
        if verdict.refused:
            raise Conflict(f"helper {helper} has an open offer or a running task; let it end first")

    async def move(self, helper: str, latitude: float, longitude: float) -> Helper:
        """Write a helper's position; durable when it returns."""
        form = forms.read_form(PositionForm, {"latitude": latitude, "longitude": longitude})
        now = self._store().clock.now()
        verdict = await self._of_helper(Move(helper, forms.place_at(form.latitude, form.longitude, now)))
        self.hints.forget(verdict.helper.id)
        return verdict.helper

    async def move_many(self, positions: Sequence[NamedPosition]) -> list[str]:
        """Take many positions as hints, written soon; returns the ids that nobody has."""
        store = self._store()
        now = store.clock.now()
        unknown: list[str] = []
        for start in range(0, len(positions), TOGETHER):
            some = positions[start : start + TOGETHER]
            known = await store.read(known_helpers, [one.id for one in some])
            unknown += [one.id for one in some if one.id not in known]
            reached = [one for one in some if one.id in known]
            self.hints.put([known[one.id] for one in reached], reached, now)
        return unknown

    async def flush_positions(self) -> int:
        """Write the positions that wait, in slices that hold up nobody; returns how many were written."""
        number = 0
        async with self._flushing:
            store = self._store()
            seconds = store.slice_seconds * SLICE_SHARE
            slices = slices_written(store, flush, self.hints.take(), least=MIN_SLICE_ROWS, seconds=seconds)
            try:
                async for hints, missed in slices:
                    self.hints.written(hints, missed)
                    number += len(hints) - len(missed)
            finally:
                self.hints.end()
        return number

    async def offers(self, helper: str) -> list[OpenOffer]:
        """Return a helper's open offers. A helper who looks at them is not silent: a pause ends."""
        found = await self.pull(helper)
        return await self._store().read(views.read_open_offers, found.id)

    async def pull(self, helper: str) -> Helper:
        found = await self.helper(helper)
        return (await self._of_helper(Pull(helper))).helper if found.timeouts else found

    async def _of_helper(self, command: HelperCommand) -> HelperVerdict:
        answer = await self.progress.submit(command)
        if not isinstance(answer, HelperVerdict):
            raise _no_helper(command.helper)
        return answer

    # Tasks

    async def open(
        self,
        form: dict[str, Any] | None = None,
        *,
        idempotency_key: str | None = None,
        scope: str = "",
        **fields: Any,
    ) -> TaskView:
        """Accept a task; returns when the first search and its offers are made. Fields as in HTTP, or by keyword."""
        document = forms.document_with(form, fields)
        given = forms.read_form(TaskForm, document, self._radius, self._reachable)
        task = self._task(given)
        if idempotency_key is not None:
            task.once, task.digest = mark_of(idempotency_key, scope), hashlib.sha256(codec.encode(given)).hexdigest()
        answer = await self._open(task)
        if isinstance(answer, Mismatched):
            raise Conflict("this Idempotency-Key was used before with another body; use a new key for a new task")
        if isinstance(answer, Known):
            return await self.task(answer.task)
        return (await self.progress.settle(answer)).view

    async def _open(self, task: HelpTask) -> CommandAnswer:
        """The bound is for new tasks: a repeat needs no place."""
        try:
            self.depth.check()
        except Refused:
            if task.once is None or (first := await self._store().read(find_first, task)) is None:
                raise
            return first
        return await self.progress.submit(Open(task, await self.progress.searches.find(task)))

    def _task(self, form: TaskForm) -> HelpTask:
        section, store = self._section, self._store()
        now = store.clock.now()
        return HelpTask(
            id=store.ids.take(now),
            requester=form.requester_id,
            category=form.category,
            latitude=to_nano(form.latitude),
            longitude=to_nano(form.longitude),
            radius=form.radius_meters or section.radius_meters,
            deadline_seconds=form.deadline_seconds or section.deadline_seconds,
            width=form.width or section.width,
            created_at=now,
            description=form.description,
            skills=tuple(sorted(set(form.skills or ()))),
            language=form.language,
            contact=forms.contact_of(form.contact) or Contact("IN_APP", form.requester_id),
            trace=self._requested(REQUEST),
        )

    async def accept(self, task: UUID | str | int, helper: str) -> TaskView:
        return await self._answer("accept", task, helper)

    async def reject(self, task: UUID | str | int, helper: str) -> TaskView:
        return await self._answer("reject", task, helper)

    async def complete(self, task: UUID | str | int, helper: str) -> TaskView:
        return await self._answer("complete", task, helper)

    async def release(self, task: UUID | str | int, helper: str, reason: str | None = None) -> TaskView:
        """An assigned helper gives the task back: it goes on to the next, and never to the same again."""
        return await self._answer("release", task, helper, reason)

    async def cancel(self, task: UUID | str | int, reason: str | None = None) -> TaskView:
        return await self._act(Withdraw(self._number(task), reason), task)

    async def _answer(
        self,
        verb: Literal["accept", "reject", "complete", "release"],
        task: UUID | str | int,
        helper: str,
        reason: str | None = None,
    ) -> TaskView:
        return await self._act(Answer(verb, self._number(task), helper, reason), task)

    async def _act(self, command: Answer | Withdraw, task: UUID | str | int) -> TaskView:
        answer = await self.progress.submit(command)
        if isinstance(answer, Missing):
            if isinstance(command, Answer) and answer.what == "helper":
                raise _no_helper(command.helper)
            raise self._no_task(task)
        assert isinstance(answer, TaskVerdict)
        verdict = await self.progress.settle(answer)
        if answer.code is not None:
            raise refused(answer.code, verdict.view, self._store().ids.to_text(verdict.view.task.id))
        return verdict.view

    # Looking

    async def task(self, task: UUID | str | int) -> TaskView:
        view = await self._store().read(views.read_task, self._number(task), self.policy)
        if view is None:
            raise self._no_task(task)
        return view

    async def task_with_timeline(self, task: UUID | str | int) -> tuple[TaskView, list[TaskStep]]:
        found = await self._store().read(views.read_whole, self._number(task), self.policy)
        if found is None:
            raise self._no_task(task)
        return found

    async def tasks(
        self,
        *,
        status: str | None = None,
        helper: str | None = None,
        requester: str | None = None,
        after: UUID | str | int | None = None,
        limit: int = 50,
    ) -> list[TaskView]:
        """Newest first; `after` is the last id of the page before."""
        state = None if status is None else one_of(TaskState, "status", status)
        before = views.NEWEST if after is None else self._cursor(after)
        return await self._store().read(
            views.list_tasks, TaskFilter(state, helper, requester), before, check_limit(limit), self.policy
        )

    async def explain(self, task: UUID | str | int) -> list[SearchView]:
        """Per search: who was ranked where, and who was left out for which reason."""
        return await self._store().read(views.read_searches, (await self.task(task)).task.id)

    async def fairness(self) -> Figures:
        return await self._store().read(read_figures, self.policy)

    def _number(self, given: UUID | str | int) -> int:
        """The id inside a UUID; 0, which nothing has, for one that is not ours."""
        return given if isinstance(given, int) else self._store().ids.from_uuid(given) or 0

    def _cursor(self, after: UUID | str | int) -> int:
        found = self._number(after)
        if not found:
            why = "must be an id of a task, as next gives it"
            raise Invalid("after is not an id of a task", fields=[("after", why)])
        return found

    def _no_task(self, task: UUID | str | int) -> NotFound:
        shown = self._store().ids.to_text(task) if isinstance(task, int) and task else task
        return NotFound(f"no task {shown}; it was never opened here, or its history was pruned")


def _no_helper(helper: str) -> NotFound:
    return NotFound(f"no helper {helper}; PUT /helpers/{helper} creates it")
