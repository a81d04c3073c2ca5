"""`ulak.actions`: the verbs of the room. Ask for runs, look at them, stop them, and mend what died."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from ulak import faults
from ulak.actions import dead, views, watch
from ulak.actions.accept import Accepted, AcceptVerdict, OtherPlan, accept_verb, find_first
from ulak.actions.acknowledge import SECRET, make_secret, public_url, run_of, token_of
from ulak.actions.audited import PYTHON
from ulak.actions.bound import Bound
from ulak.actions.directory.verbs import Directory
from ulak.actions.model import NOT_A_PLAN, RunState
from ulak.actions.plans.book import PlanBook
from ulak.actions.plans.render import Renderer
from ulak.actions.plans.verbs import Plans
from ulak.actions.receipts import take_receipts
from ulak.actions.records import NEWEST, missing_run
from ulak.actions.steps.ends import StepEnds
from ulak.actions.steps.fresh import FreshCases
from ulak.actions.steps.starts import Starter
from ulak.actions.steps.stops import stop_run
from ulak.actions.unreadable import UnreadableMessage, list_unreadable, read_unreadable
from ulak.actions.wire import events, request, schemas
from ulak.actions.wire.messages import read_messages
from ulak.actions.wire.refused import refuse_requests, tell_unreadable
from ulak.actions.wire.request import check_limit
from ulak.channels.receipts import DeliveryReceipt
from ulak.errors import Conflict, Error, Invalid, NotFound, Refused
from ulak.ids import Ids
from ulak.settings.actions import Actions as ActionsSection
from ulak.spine.redriver import Redriver
from ulak.spine.room import Host
from ulak.spine.store import Tx
from ulak.spine.units.audit import record as record_audit

REQUEST = "actions.request"  # in traces: the span under which all of a run stands
RECEIPT_LOOKS = 2
RECEIPT_PAUSE_SECONDS = 0.5


class Actions:
    """Use it as `ulak.actions`, inside `async with Ulak() as ulak`."""

    def __init__(
        self,
        host: Host,
        section: ActionsSection,
        book: PlanBook,
        ends: StepEnds,
        renderer: Renderer,
        starter: Starter,
        fresh: FreshCases,
    ) -> None:
        self._host = host
        self._section = section
        self._book = book
        self._ends = ends
        self._accept = accept_verb(book, starter, section.idempotency_millis)
        self._bound = Bound(section.capacity)
        self._secret = ""
        self._fresh = fresh
        self._redriver: Redriver[dead.DeadFilter] | None = None
        self.directory = Directory(host, lambda: self._secret, fresh.clear)
        self.plans = Plans(host, section, book, renderer)

    async def start(self) -> None:
        """The key of signed links: made once, and the same on all instances."""
        self._secret = await self._host.store.write(make_secret, SECRET)

    # Requests

    async def request(
        self,
        action_plan_id: int,
        evaluation_key: str,
        *,
        device_id: str | None = None,
        variables: dict[str, Any] | None = None,
        **more: Any,
    ) -> UUID:
        """Ask for a plan to be run; returns the run's id. A repeat of the evaluation is the first run."""
        context = {"device_id": device_id, "stream_id": more.pop("stream_id", None)}
        data = {"action_plan_id": action_plan_id, "evaluation_key": evaluation_key, "variables": variables, **more}
        return UUID((await self.accept({"context": context, "data": data})).run_id)

    async def accept(self, given: bytes | dict[str, Any]) -> events.ActionAccepted:
        """One request, as the wire has it."""
        asked, store = request.decode_request(given), self._host.store
        now = store.clock.now()
        run = request.to_run(asked, store.ids.take(now), now)
        run.trace = self._host.telemetry.tracer.requested(REQUEST)
        try:
            await self._bound.admit(store, 1)
        except Refused:
            first = await store.read(find_first, run, self._section.idempotency_millis)
            if first is None:
                raise
            return self._answer(first)
        new = True  # an accept whose end is unknown keeps its place until the next count
        try:
            verdict = await store.submit(self._accept, run)
            new = isinstance(verdict, Accepted) and not verdict.duplicate
        finally:
            self._bound.settle(1, new=new)
        return self._answer(verdict)

    def _answer(self, verdict: AcceptVerdict) -> events.ActionAccepted:
        if isinstance(verdict, Accepted):
            return events.ActionAccepted(self._host.store.ids.to_text(verdict.run), verdict.duplicate, verdict.trace_id)
        if isinstance(verdict, OtherPlan):
            raise Conflict(
                f"this evaluation_key was used before for action plan {verdict.plan:,}; use a new key for another plan"
            )
        raise faults.refusal("the request", [("data.action_plan_id", NOT_A_PLAN)])

    async def accept_batch(
        self,
        given: Sequence[bytes | dict[str, Any]],
        *,
        origin: str | None = None,
        headers: Sequence[Mapping[str, str]] | None = None,
    ) -> list[events.ActionAccepted | Error]:
        """Each on its own merits. From a bus (`origin`), what HTTP would refuse ends as a failed event.

        `headers` has those of each message: the trace that it belongs to.
        """
        carried = headers or [{}] * len(given)
        verdicts = await asyncio.gather(*map(self._accept_one, given, carried))
        together = zip(given, verdicts, strict=True)
        refused = [(one, verdict) for one, verdict in together if isinstance(verdict, Invalid | Conflict)]
        if origin is not None and refused:
            await self._host.store.write(refuse_requests, refused)
        return verdicts

    async def _accept_one(
        self, given: bytes | dict[str, Any], headers: Mapping[str, str]
    ) -> events.ActionAccepted | Error:
        try:
            with self._host.telemetry.tracer.within(headers):
                return await self.accept(given)
        except Error as error:
            return error

    async def keep_unreadable(self, body: bytes, topic: str, partition: int, offset: int) -> None:
        """Keep a message of a bus that can't be read, and report it on the dead-letter topic."""
        await self._host.store.write(tell_unreadable, body, topic, partition, offset)

    async def unreadable(self, *, after: str | None = None, limit: int = 50) -> list[UnreadableMessage]:
        """Messages that were kept, in the order of topic, partition and offset; without their bytes."""
        return await self._host.store.read(list_unreadable, after, check_limit(limit))

    async def unreadable_body(self, identifier: str) -> bytes:
        return await self._host.store.read(read_unreadable, identifier)

    # Runs

    async def run(self, identifier: UUID | str) -> dict[str, Any]:
        return await self._host.store.read(views.read_view, self._number(identifier), self._book)

    async def runs(
        self, *, state: str | None = None, after: str | None = None, limit: int = 50
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Newest first, and what continues the list."""
        wanted = None if state is None else _known_state(state)
        before = NEWEST if after is None else _cursor(after, self._host.store.ids)
        return await self._host.store.read(views.list_views, wanted, before, check_limit(limit), self._book)

    def _number(self, identifier: UUID | str) -> int:
        return _number(identifier, self._host.store.ids)

    async def explain(self, identifier: UUID | str) -> list[dict[str, Any]]:
        """Every choice, skip, wait, retry and merge, in order."""
        return await self._host.store.read(views.explain, self._number(identifier))

    async def cancel(self, identifier: UUID | str, *, who: str = PYTHON) -> dict[str, Any]:
        return await self._stop(self._number(identifier), RunState.CANCELLED, who)

    async def acknowledge(self, identifier: UUID | str, *, who: str = PYTHON) -> dict[str, Any]:
        """Somebody has seen it: whatever is queued, delayed or retrying is over."""
        return await self._stop(self._number(identifier), RunState.ACKNOWLEDGED, who)

    async def acknowledge_by_link(self, token: str, *, who: str = "link") -> dict[str, Any]:
        return await self._stop(self.run_of_link(token), RunState.ACKNOWLEDGED, who)

    def run_of_link(self, token: str) -> int:
        return run_of(self._secret, token)

    def link(self, run: int) -> str:
        """The address of the page on which one tap acknowledges a run."""
        return f"{public_url(self._host.settings)}/api/actions/acknowledge/{token_of(self._secret, run)}"

    async def _stop(self, run: int, state: RunState, who: str) -> dict[str, Any]:
        store = self._host.store
        self._fresh.stop(run)
        await store.write(_stop_audited, run, state, who, self._book, self._ends)
        return await store.read(views.read_view, run, self._book)

    async def take_receipts(self, receipts: Sequence[DeliveryReceipt]) -> int:
        """Take a provider's receipts; one may be here before its message is settled, so look twice."""
        store = self._host.store
        take = partial(take_receipts, told=self._section.receipt_events)
        known = await store.write(take, receipts, self._book, self._ends)
        for _ in range(RECEIPT_LOOKS):
            if known >= len(receipts):
                break
            await self._host.clock.wait(asyncio.Event(), RECEIPT_PAUSE_SECONDS)
            known = await store.write(take, receipts, self._book, self._ends)
        return known

    # Dead letters

    async def dead_letters(
        self, *, error_code: str | None = None, reason: str | None = None, after: int = 0, limit: int = 50
    ) -> list[events.ActionDeadLetter]:
        dead.check_reason(reason)
        wanted = dead.DeadFilter(error_code, reason)
        return await self._host.store.read(dead.list_letters, wanted, after, check_limit(limit))

    async def causes(self) -> list[dict[str, Any]]:
        return await self._host.store.read(dead.list_causes)

    async def dead_letter(self, identifier: int) -> events.ActionDeadLetter:
        return await self._host.store.read(dead.show_letter, identifier)

    async def mend(self, identifier: int, changes: Any, *, who: str = PYTHON) -> events.ActionDeadLetter:
        """Change what a dead letter says before it is sent again: `variables`, `subject`, `body`."""
        return await self._host.store.write(dead.mend_letter, identifier, dead.parse_mending(changes), who)

    async def redrive(self, identifier: int, *, dry_run: bool = False, who: str = PYTHON) -> events.ActionDeadLetter:
        """Send a dead letter again: same id, same idempotency key, fresh attempts."""
        letter = await self.dead_letter(identifier)
        if not dry_run and not await self._host.store.write(dead.redrive_letters, who, [identifier]):
            raise NotFound(f"no dead letter {identifier}; it may have been sent again already")
        return letter

    async def redrive_many(
        self,
        *,
        error_code: str | None = None,
        reason: str | None = None,
        dry_run: bool = False,
        rate_per_second: float | None = None,
        who: str = PYTHON,
    ) -> list[str]:
        """All that fit, oldest first, at a rate if one is given; returns their ids."""
        went: list[str] = []
        after, page = 0, 1 if rate_per_second else 200
        while letters := await self.dead_letters(error_code=error_code, reason=reason, after=after, limit=page):
            numbers = [int(letter.id or 0) for letter in letters]
            after = numbers[-1]
            moved = numbers if dry_run else await self._host.store.write(dead.redrive_letters, who, numbers)
            went += map(str, moved)
            if rate_per_second and not dry_run:
                await self._host.clock.wait(asyncio.Event(), 1 / rate_per_second)
        return went

    async def start_redrive(
        self, rate_per_second: float, *, error_code: str | None = None, reason: str | None = None, who: str = PYTHON
    ) -> list[str]:
        """A redrive at a rate that goes on by itself, the only one of its store; returns the ids that fit now."""
        ids = await self.redrive_many(error_code=error_code, reason=reason, dry_run=True)
        if self._redriver is None:
            self._redriver = Redriver(self._host.store, dead.find_letters, dead.redrive_letters)
        await self._redriver.start(dead.DeadFilter(error_code, reason), rate_per_second, len(ids), who=who)
        return ids

    async def close(self) -> None:
        """A redrive that is under way ends; what it has not sent again stays a dead letter."""
        redriver, self._redriver = self._redriver, None
        if redriver is not None:
            redriver.cancel()

    # The room's eye on itself, and its topics

    async def service_levels(self) -> dict[str, Any]:
        return await self._host.store.read(watch.service_levels, self._section.slo_hours)

    async def watchdog(self) -> dict[str, Any]:
        """Looks again before it cries: a step may have ended between two of its looks."""
        found = await self._host.store.read(watch.watch)
        for _ in range(3):
            if found["difference"] == 0:
                break
            found = await self._host.store.read(watch.watch)
        return found

    async def messages(
        self, *, topic: str | None = None, after: int = 0, limit: int = 100
    ) -> tuple[list[dict[str, Any]], int]:
        """Return the messages of the topics, in commit order. Only at the end of the log is a page empty."""
        found: list[dict[str, Any]] = []
        over = False
        while not found and not over:
            found, after, over = await self._host.store.read(read_messages, topic, after, check_limit(limit))
        return found, after

    def schema(self, event: str) -> dict[str, Any]:
        return schemas.schema_of(event)


def _stop_audited(tx: Tx, run: int, state: RunState, who: str, book: PlanBook, ends: StepEnds) -> None:
    stop_run(tx, run, state, who, book, ends)
    record_audit(tx, who, f"actions.run.{state}", tx.ids.to_text(run))


def _number(identifier: UUID | str, ids: Ids) -> int:
    found = ids.from_uuid(identifier)
    if found is None:
        raise missing_run(identifier)
    return found


def _cursor(text: str, ids: Ids) -> int:
    try:
        return _number(text, ids)
    except NotFound:
        raise Invalid("after is not the id of a run", fields=[("after", "must be `next` of the page above")]) from None


def _known_state(state: str) -> RunState:
    try:
        return RunState(state)
    except ValueError:
        why = f"must be one of {', '.join(RunState)}"
        raise Invalid(f"no state {state!r:.50}; it {why}", fields=[("state", why)]) from None
