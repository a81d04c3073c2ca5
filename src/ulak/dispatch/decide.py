"""The room's decisions, pure: a world of loaded tasks, offers and helpers, a command, and what then changes.

Nothing here reads a store or a clock. Transactions and simulations run the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any, Literal

from ulak.dispatch.asking import EXHAUSTED, ask_next, close_offer, end_task, set_free, take_list, tell, touch, wish_of
from ulak.dispatch.command import (
    Answer,
    CommandAnswer,
    Expire,
    Extend,
    Known,
    Mismatched,
    Missing,
    Open,
    Proceed,
    Skip,
    TaskCommand,
    TaskVerdict,
    Withdraw,
)
from ulak.dispatch.model import BUSY, Code, Helper, HelpTask, Offer, OfferState, TaskState
from ulak.dispatch.world import Note, World, view_of


def apply(world: World, command: TaskCommand) -> CommandAnswer:
    """Decide one command. The world is then as it would be if the commands had come one by one."""
    if isinstance(command, Open):
        return _open(world, command)
    task = world.tasks.get(command.task)
    if task is None:
        return Missing("task")
    was_live = task.is_live
    answer = _DECISIONS[type(command)](world, task, command)
    if isinstance(answer, TaskVerdict):
        answer.change = task.is_live - was_live
    return answer


def _open(world: World, command: Open) -> CommandAnswer:
    if (repeated := answer_again(command.task, world.once)) is not None:
        return repeated
    task = copy(command.task)
    task.max_searches = world.policy.searches
    if task.once is not None:
        world.once[task.once] = (task.id, task.digest or "")
    world.tasks[task.id], world.offers[task.id] = task, []
    world.changes.new_tasks[task.id] = task
    tell(world, "dispatch.task.opened", task)
    take_list(world, task, command.found)
    ask_next(world, task)
    verdict = _verdict(world, task)
    verdict.change = int(task.is_live)
    return verdict


def answer_again(task: HelpTask, once: Mapping[str, tuple[int, str]]) -> Known | Mismatched | None:
    """Return the answer to a key that was used before; None when the task is a new one."""
    known = None if task.once is None else once.get(task.once)
    if known is None:
        return None
    return Known(known[0]) if known[1] == task.digest else Mismatched()


# Answers


def _answer(world: World, task: HelpTask, command: Answer) -> TaskVerdict | Missing:
    helper = world.named(command.helper)
    if helper is None:
        return Missing("helper")
    _expire_overdue(world, task)
    decisions = {"accept": _accept, "reject": _reject, "complete": _complete, "release": _release}
    return _verdict(world, task, decisions[command.verb](world, task, helper, command.reason))


def _refusal(task: HelpTask, offer: Offer | None, helper: Helper) -> Code | None:
    """Return why an offer can't be answered: the first code that fits."""
    if task.helper is not None and task.helper != helper.id:  # also if it was cancelled then
        return Code.ALREADY_TAKEN
    if task.state is TaskState.CANCELLED:
        return Code.TASK_CANCELLED
    if offer is None:
        return Code.NOT_OFFERED
    if offer.state is OfferState.EXPIRED:
        return Code.OFFER_EXPIRED
    return None if offer.is_open else Code.OFFER_CLOSED


def _offer_to(world: World, task: HelpTask, helper: Helper) -> Offer | None:
    return next((offer for offer in world.offers[task.id] if offer.helper == helper.id), None)


def _accept(world: World, task: HelpTask, helper: Helper, _reason: str | None) -> Code | None:
    offer = _offer_to(world, task, helper)
    if task.helper == helper.id and task.state in (TaskState.ASSIGNED, TaskState.COMPLETED):
        return None  # said again
    if code := _refusal(task, offer, helper):
        return code
    assert offer is not None
    close_offer(world, offer, OfferState.ACCEPTED)
    helper.timeouts, helper.doing, helper.served_at = 0, BUSY, world.now
    task.move(TaskState.ASSIGNED)
    task.helper, task.helper_name, task.assigned_at = helper.id, helper.helper, world.now
    touch(world, task)
    tell(world, "dispatch.offer.accepted", task, offer)
    _withdraw_rest(world, task, "taken")
    tell(world, "dispatch.task.assigned", task, helper=helper)
    world.changes.notes.append(Note("assigned", task, helper))
    return None


def _reject(world: World, task: HelpTask, helper: Helper, _reason: str | None) -> Code | None:
    offer = _offer_to(world, task, helper)
    if offer is not None and offer.state is OfferState.REJECTED:
        return None  # said again
    if code := _refusal(task, offer, helper):
        return code
    assert offer is not None
    close_offer(world, offer, OfferState.REJECTED)
    helper.timeouts = 0
    tell(world, "dispatch.offer.rejected", task, offer)
    ask_next(world, task)
    return None


def _complete(world: World, task: HelpTask, helper: Helper, _reason: str | None) -> Code | None:
    if task.helper == helper.id and task.state is TaskState.COMPLETED:
        return None  # said again
    if code := _not_assigned(task, helper):
        return code
    helper.roll(world.month)
    helper.completed += 1
    set_free(world, helper)
    task.move(TaskState.COMPLETED)
    task.ended_at = world.now
    touch(world, task)
    tell(world, "dispatch.task.completed", task, helper=helper)
    return None


def _release(world: World, task: HelpTask, helper: Helper, reason: str | None) -> Code | None:
    offer = _offer_to(world, task, helper)
    if offer is not None and offer.released_at is not None:
        return None  # said again
    if code := _not_assigned(task, helper):
        return code
    if offer is not None:
        offer.released_at, offer.reason = world.now, reason
        world.changes.offers[offer.id] = offer
    set_free(world, helper)
    task.move(TaskState.SEARCHING)
    task.helper = task.helper_name = task.assigned_at = None
    task.max_searches = max(task.max_searches, task.searches + 1)
    tell(world, "dispatch.task.released", task, helper=helper, reason=reason)
    ask_next(world, task)
    return None


def _not_assigned(task: HelpTask, helper: Helper) -> Code | None:
    """Return why a helper can't complete a task or give it back."""
    if task.helper != helper.id:
        return Code.NOT_ASSIGNED
    if task.state is TaskState.CANCELLED:
        return Code.TASK_CANCELLED
    return None if task.state is TaskState.ASSIGNED else Code.NOT_ASSIGNED


def _cancel(world: World, task: HelpTask, command: Withdraw) -> TaskVerdict:
    if not task.is_live:
        again = task.state is TaskState.CANCELLED and task.reason != EXHAUSTED
        return _verdict(world, task, None if again else Code.TASK_ENDED)
    _expire_overdue(world, task, go_on=False)
    if task.state is TaskState.ASSIGNED and task.helper is not None:
        helper = world.helpers.get(task.helper)
        if helper is not None:
            set_free(world, helper)
            world.changes.notes.append(Note("cancelled", task, helper))
    _withdraw_rest(world, task, "cancelled")
    end_task(world, task, TaskState.CANCELLED, command.reason)
    return _verdict(world, task)


# Offers that end without an answer


def _end_offer(world: World, task: HelpTask, command: Expire | Skip) -> TaskVerdict:
    offer = next((one for one in world.offers[task.id] if one.id == command.offer), None)
    if offer is None or not offer.is_open:
        return _verdict(world, task)
    if isinstance(command, Skip):
        close_offer(world, offer, OfferState.WITHDRAWN)
        offer.reason = "undelivered"
        tell(world, "dispatch.offer.withdrawn", task, offer, reason="undelivered")
    elif offer.deadline_at > world.now:
        return _verdict(world, task, again_at=offer.deadline_at)
    else:
        _let_expire(world, task, offer)
    ask_next(world, task)
    return _verdict(world, task)


def _expire_overdue(world: World, task: HelpTask, *, go_on: bool = True) -> None:
    """An answer after the deadline finds the offer expired, whether or not its timer has fired."""
    overdue = [offer for offer in world.open_offers(task) if offer.deadline_at <= world.now]
    for offer in overdue:
        _let_expire(world, task, offer)
    if overdue and go_on:
        ask_next(world, task)


def _let_expire(world: World, task: HelpTask, offer: Offer) -> None:
    close_offer(world, offer, OfferState.EXPIRED)
    helper = world.helpers.get(offer.helper)
    if helper is not None:
        helper.roll(world.month)
        helper.timeouts += 1
        helper.expired += 1
    tell(world, "dispatch.offer.expired", task, offer)


def _withdraw_rest(world: World, task: HelpTask, occasion: Literal["taken", "cancelled"]) -> None:
    for offer in world.open_offers(task):
        close_offer(world, offer, OfferState.WITHDRAWN)
        tell(world, "dispatch.offer.withdrawn", task, offer, reason=occasion)
        world.changes.notes.append(Note(occasion, task, world.helpers.get(offer.helper), offer))


# Steps that a verdict asks for


def _extend(world: World, task: HelpTask, command: Extend) -> TaskVerdict:
    if task.state is TaskState.SEARCHING and task.searches == command.search:  # or somebody else has searched
        take_list(world, task, command.found)
        ask_next(world, task)
    return _verdict(world, task)


def _proceed(world: World, task: HelpTask, _command: Proceed) -> TaskVerdict:
    if wish_of(world, task) == "proceed":
        ask_next(world, task)
    return _verdict(world, task)


def _verdict(world: World, task: HelpTask, code: Code | None = None, again_at: int | None = None) -> TaskVerdict:
    wish = wish_of(world, task)
    if wish is not None:
        world.changes.wishes.add(task.id)
    else:
        world.changes.wishes.discard(task.id)
    return TaskVerdict(view_of(world, task), code, wish, again_at)


_DECISIONS: dict[type[Any], Callable[[World, HelpTask, Any], TaskVerdict | Missing]] = {
    Answer: _answer,
    Withdraw: _cancel,
    Expire: _end_offer,
    Skip: _end_offer,
    Extend: _extend,
    Proceed: _proceed,
}
