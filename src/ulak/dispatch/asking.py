"""Making and ending offers, pure: ask the next of a list; at its end ask for another search, or end the task."""

from __future__ import annotations

from ulak.dispatch.command import Wish
from ulak.dispatch.model import IDLE, OFFERED, Helper, HelpTask, Offer, OfferState, SearchResult, TaskState
from ulak.dispatch.nearby.eligible import obstacle
from ulak.dispatch.nearby.geo import chord_of, meters_of, squared_chord, vector_at
from ulak.dispatch.world import Happening, Note, World, place_of

EXHAUSTED = "exhausted"


def ask_next(world: World, task: HelpTask) -> None:
    """Fill the task's width from its list; at its end search again, or give up."""
    for _ in range(task.width - len(world.open_offers(task))):
        found = _next(world, task)
        if found is None:
            break
        _offer(world, task, *found)
    touch(world, task)
    if world.open_offers(task):
        if task.state is not TaskState.OFFERED:
            task.move(TaskState.OFFERED)
    elif wish_of(world, task) is None:
        _give_up(world, task)
    elif task.state is not TaskState.SEARCHING:
        task.move(TaskState.SEARCHING)


def wish_of(world: World, task: HelpTask) -> Wish | None:
    """Return the step that has to follow before this task is settled for now."""
    if task.state not in (TaskState.SEARCHING, TaskState.OFFERED):
        return None
    offers = len(world.open_offers(task))
    if offers < task.width and world.waiting(task):
        return "proceed"
    return "search" if not offers and task.searches < task.max_searches else None


def _next(world: World, task: HelpTask) -> tuple[Helper, float] | None:
    """Return the first of the list who can be asked now; None at its end, or before a helper that was not loaded."""
    asked = {offer.helper for offer in world.offers[task.id]}
    centre, limit = vector_at(*place_of(task)), chord_of(world.policy.radius_of(task.radius, max(task.searches - 1, 0)))
    for candidate in world.waiting(task):
        if candidate.id not in world.seen:
            return None
        task.place += 1
        helper = world.helpers.get(candidate.id)
        if helper is None or helper.point is None:
            continue
        chord = squared_chord(centre, helper.point.vector)
        if chord <= limit and obstacle(helper, task.skills, asked, world.now, world.policy) is None:
            return helper, meters_of(chord)
    return None


def _offer(world: World, task: HelpTask, helper: Helper, distance: float) -> None:
    deadline_at = world.now + round(task.deadline_seconds * 1000)
    offer = Offer(world.take_id(), task.id, helper.id, OfferState.OPEN, world.now, deadline_at, round(distance, 1))
    world.offers[task.id].append(offer)
    world.changes.new_offers[offer.id] = offer
    helper.doing = OFFERED
    world.changes.helpers[helper.id] = helper
    tell(world, "dispatch.offer.opened", task, offer)
    world.changes.notes.append(Note("offer", task, helper, offer))


def take_list(world: World, task: HelpTask, found: SearchResult) -> None:
    world.lists[task.id] = found.candidates
    world.changes.searches.append((task, task.searches, found))
    task.searches, task.searched_at, task.place = task.searches + 1, found.at, 0
    touch(world, task)


def _give_up(world: World, task: HelpTask) -> None:
    end_task(world, task, world.policy.exhausted, EXHAUSTED)
    world.changes.notes.append(Note("nobody", task))


def end_task(world: World, task: HelpTask, state: TaskState, reason: str | None) -> None:
    task.move(state)
    task.ended_at, task.reason = world.now, reason
    touch(world, task)
    tell(world, f"dispatch.task.{state.lower()}", task, reason=reason)


def close_offer(world: World, offer: Offer, state: OfferState) -> None:
    offer.move(state, world.now)
    world.changes.offers[offer.id] = offer
    world.changes.idle_timers.append(offer.timer)
    helper = world.helpers.get(offer.helper)
    if helper is not None:
        set_free(world, helper)


def set_free(world: World, helper: Helper) -> None:
    helper.doing = IDLE
    world.changes.helpers[helper.id] = helper


def touch(world: World, task: HelpTask) -> None:
    world.changes.tasks[task.id] = task


def tell(
    world: World,
    name: str,
    task: HelpTask,
    offer: Offer | None = None,
    *,
    helper: Helper | None = None,
    reason: str | None = None,
) -> None:
    about = helper or (None if offer is None else world.helpers.get(offer.helper))
    data = {} if about is None else {"helper": about.helper}
    data |= {} if reason is None else {"reason": reason}
    world.changes.events.append(Happening(name, task.id, None if offer is None else offer.id, data))
