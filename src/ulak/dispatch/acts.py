"""The one merged verb of the room: many callers' commands are loaded, locked, decided and saved together.

Tasks are locked before helpers, each in the order of their ids, so two processes never wait for one another in a ring.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from ulak.clock import to_datetime
from ulak.dispatch import records
from ulak.dispatch.command import (
    Answer,
    Command,
    CommandAnswer,
    Extend,
    Forget,
    Known,
    Mismatched,
    Move,
    Open,
    Pull,
    Put,
    Withdraw,
)
from ulak.dispatch.decide import answer_again, apply
from ulak.dispatch.messages import Telling, compose
from ulak.dispatch.model import EXPIRE, SEARCH, Candidate, HelpTask, Offer, TaskState
from ulak.dispatch.policy import Policy
from ulak.dispatch.roster import apply_to_helper
from ulak.dispatch.world import Happening, World, WorldChanges
from ulak.errors import Invalid
from ulak.spine.job import JobEvent, NewJob, Priority
from ulak.spine.store import Tx

# So many of a list are loaded beside those that the task asks and those that other commands of the batch bring.
LOOK_AHEAD = 2
# A task that has to go on waits so long for the caller who brought it there; then a job takes it up.
RESCUE_SECONDS = 2.0

_OF_HELPERS = (Put, Move, Forget, Pull)


@dataclass(frozen=True, slots=True)
class Ports:
    """The ports that a transaction of the room uses: messages, timers, and taking timers back."""

    post: Callable[[Tx, Sequence[Telling]], Sequence[int]]
    arm: Callable[[Tx, Sequence[NewJob], Sequence[str | None]], Sequence[int]]
    disarm: Callable[[Tx, Sequence[int]], object]


class Acts:
    """Runs batches of commands by one policy."""

    def __init__(self, policy: Policy, ports: Ports) -> None:
        self.policy = policy
        self._ports = ports

    def run(self, tx: Tx, commands: list[Command]) -> list[CommandAnswer]:
        world = World(tx.now, self.policy, partial(tx.ids.take, tx.now))
        _load(tx, world, commands)
        answers = [
            apply_to_helper(world, one) if isinstance(one, _OF_HELPERS) else apply(world, one) for one in commands
        ]
        changes = world.changes
        self._arm(tx, world)
        self._post(tx, changes)
        _emit(tx, changes.events)
        records.save(tx, changes)
        moved = [world.helpers[one] for one in sorted(changes.moved) if one not in changes.new_helpers]
        records.save_places(tx, moved)
        return answers

    def _arm(self, tx: Tx, world: World) -> None:
        changes = world.changes
        offers = [one for one in changes.new_offers.values() if one.is_open]
        tasks = [world.tasks[one] for one in sorted(changes.wishes)]
        self._drop_rescues(changes)
        jobs = [
            NewJob(EXPIRE, {"task": one.task, "offer": one.id}, Priority.HIGH, due_at=to_datetime(one.deadline_at))
            for one in offers
        ]
        rescues = [NewJob(SEARCH, {"task": one.id}, delay_seconds=RESCUE_SECONDS) for one in tasks]
        if jobs or rescues:
            armed: list[Offer | HelpTask] = [*offers, *tasks]
            traces = [*(world.tasks[one.task].trace for one in offers), *(one.trace for one in tasks)]
            for thing, timer in zip(armed, self._ports.arm(tx, [*jobs, *rescues], traces), strict=True):
                thing.timer = timer
        idle = [timer for timer in changes.idle_timers if timer]
        if idle:
            self._ports.disarm(tx, sorted(idle))

    def _drop_rescues(self, changes: WorldChanges) -> None:
        for task in changes.tasks.values():
            if task.timer:
                changes.idle_timers.append(task.timer)
                task.timer = 0

    def _post(self, tx: Tx, changes: WorldChanges) -> None:
        told = [(note, message) for note in changes.notes if (message := compose(note, self.policy, tx.ids.to_text))]
        if not told:
            return
        for (note, _), identifier in zip(told, self._posted(tx, [one for _, one in told]), strict=True):
            if note.occasion == "offer" and note.offer is not None:
                note.offer.message = identifier

    def _posted(self, tx: Tx, tellings: Sequence[Telling]) -> Sequence[int]:
        """A contact that can't be written to any more must not keep an answer or a deadline from its effect."""
        try:
            return self._ports.post(tx, tellings)
        except Invalid:
            if len(tellings) > 1:
                return [self._posted(tx, [one])[0] for one in tellings]
            self._drop(tx, tellings[0])
            return [0]

    def _drop(self, tx: Tx, telling: Telling) -> None:
        """Its continuation hears of a message that can't be posted as of one that died."""
        tx.emit("dispatch.message.dropped", 0, "dispatch", {"notificationType": telling.contact.notification_type})
        if telling.continuation is not None:
            outcome = {"outcome": JobEvent.DEAD, "payload": {"metadata": telling.metadata}}
            self._ports.arm(tx, [NewJob(telling.continuation, outcome)], [telling.trace])


def _emit(tx: Tx, happenings: Iterable[Happening]) -> None:
    """Their data has the ids by which callers know tasks and offers."""
    for one in happenings:
        data = {"task": tx.ids.to_text(one.task), **one.details}
        if one.offer is not None:
            data["offer"] = tx.ids.to_text(one.offer)
        tx.emit(one.name, one.offer or one.task, "dispatch", data)


def find_first(tx: Tx, task: HelpTask) -> Known | Mismatched | None:
    """The answer to a repeat, without a place for anything new; None when it is not a repeat."""
    return answer_again(task, records.find_once(tx, {task.once} if task.once else ()))


def _load(tx: Tx, world: World, commands: Sequence[Command]) -> None:
    marks = {one.task.once for one in commands if isinstance(one, Open) and one.task.once}
    created = {one.helper for one in commands if isinstance(one, Put)}
    tx.lock_keys(sorted({f"dispatch:once:{one}" for one in marks} | {f"dispatch:helper:{one}" for one in created}))
    records.load_tasks(tx, world, [one.task for one in commands if not isinstance(one, (Open, *_OF_HELPERS))])
    world.once = records.find_once(tx, marks)
    records.load_names(tx, world, created | {one.helper for one in commands if isinstance(one, (Answer, *_OF_HELPERS))})
    records.load_lists(tx, world, _asking(world, commands))
    records.load_helpers(tx, world, _helpers_of(world, commands))


def _asking(world: World, commands: Sequence[Command]) -> list[HelpTask]:
    """The tasks that may need their lists: not those that are only accepted or ended while no offer is overdue."""
    wanted = {one.task for one in commands if not isinstance(one, (Open, *_OF_HELPERS)) and not _is_plain(one)}
    wanted |= {
        task
        for task, offers in world.offers.items()
        if any(one.is_open and one.deadline_at <= world.now for one in offers)
    }
    return [task for task in world.tasks.values() if task.is_live and task.id in wanted]


def _is_plain(command: Command) -> bool:
    return isinstance(command, Withdraw) or (isinstance(command, Answer) and command.verb in {"accept", "complete"})


def _helpers_of(world: World, commands: Collection[Command]) -> set[int]:
    """Return the helpers that are named, asked or assigned, and the first of each list who could be asked."""
    found = set(world.names.values())
    for task in world.tasks.values():
        found |= {one.helper for one in world.open_offers(task)}
        if task.helper is not None and task.state is TaskState.ASSIGNED:
            found.add(task.helper)
    for task in world.tasks.values():
        _look_ahead(found, task, world.waiting(task))
    for command in commands:
        if isinstance(command, Open):
            _look_ahead(found, command.task, command.found.candidates)
        elif isinstance(command, Extend) and command.task in world.tasks:
            _look_ahead(found, world.tasks[command.task], command.found.candidates)
    return found


def _look_ahead(found: set[int], task: HelpTask, candidates: Iterable[Candidate]) -> None:
    """Each list brings helpers of its own: those of others may be asked by others."""
    wanted = task.width + LOOK_AHEAD
    for one in candidates:
        if one.id not in found:
            if not wanted:
                return
            wanted -= 1
            found.add(one.id)
