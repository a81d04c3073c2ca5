"""The room's decisions, without a store: who is asked when, who wins, and what the loser is told."""

from __future__ import annotations

import itertools

import pytest

from tests.dispatch.pure import Town, place
from ulak.dispatch.command import Answer, Missing, Open, Skip
from ulak.dispatch.decide import apply
from ulak.dispatch.model import OFFER_MOVES, TASK_MOVES, HelperStatus, HelpTask, Offer, OfferState, TaskState
from ulak.dispatch.policy import NEVER, Policy
from ulak.errors import IllegalTransition


@pytest.fixture
def town() -> Town:
    return Town()


def opened(verdict):
    return [one.helper for one in verdict.view.pending]


def test_the_nearest_of_those_with_the_fewest_tasks_is_asked_first(town):
    town.helpers(3)
    town.helper("h0").month, town.helper("h0").completed = town.world.month, 1
    verdict = town.open()
    assert opened(verdict) == ["h1"]
    assert verdict.view.waiting == ("h2", "h0")
    assert verdict.state is TaskState.OFFERED


def test_counts_of_another_month_do_not_matter(town):
    town.helpers(2)
    town.helper("h0").month, town.helper("h0").completed = town.world.month - 1, 9
    assert opened(town.open()) == ["h0"]


def test_an_accepted_task_is_assigned_and_the_requester_is_told(town):
    town.helpers(2)
    task = town.open().view.task.id
    verdict = town.answer("accept", task, "h0")
    assert (verdict.code, verdict.state, verdict.view.helper) == (None, TaskState.ASSIGNED, "h0")
    assert (verdict.view.pending, verdict.view.waiting) == ((), ())
    assert town.helper("h0").status(3) is HelperStatus.BUSY
    assert town.occasions() == ["offer", "assigned"]


def test_a_refusal_goes_to_the_next_at_once_and_is_free(town):
    town.helpers(2)
    task = town.open().view.task.id
    assert opened(town.answer("reject", task, "h0")) == ["h1"]
    assert town.helper("h0").timeouts == 0


def test_an_expired_offer_goes_to_the_next_and_counts(town):
    town.helpers(2)
    verdict = town.open()
    town.advance(600)
    verdict = town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    assert opened(verdict) == ["h1"]
    assert (town.helper("h0").timeouts, town.helper("h0").expired) == (1, 1)


def test_a_timer_that_fires_early_is_sent_back_until_the_deadline(town):
    town.helpers(1)
    verdict = town.open()
    pending = verdict.view.pending[0]
    town.advance(599)
    again = town.expire(verdict.view.task.id, pending.offer)
    assert (again.again_at, opened(again)) == (pending.deadline_at, ["h0"])


def test_a_timer_that_fires_twice_changes_nothing(town):
    town.helpers(3)
    verdict = town.open()
    town.advance(600)
    first = town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    again = town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    assert opened(first) == opened(again) == ["h1"]
    assert town.helper("h0").timeouts == 1


def test_an_answer_after_the_deadline_is_refused_and_expires_the_offer_itself(town):
    town.helpers(2)
    task = town.open().view.task.id
    town.advance(600)
    late = town.answer("accept", task, "h0")
    assert (late.code, opened(late)) == ("OFFER_EXPIRED", ["h1"])
    assert town.helper("h0").timeouts == 1


def test_an_answer_just_before_the_deadline_counts(town):
    town.helpers(1)
    task = town.open().view.task.id
    town.advance(599.999)
    assert town.answer("accept", task, "h0").code is None


def test_repeating_an_answer_is_the_same_answer(town):
    town.helpers(3)
    task = town.open().view.task.id
    town.answer("reject", task, "h0")
    assert town.answer("reject", task, "h0").code is None
    town.answer("accept", task, "h1")
    assert town.answer("accept", task, "h1").code is None
    assert town.answer("reject", task, "h0").code is None
    town.answer("complete", task, "h1")
    assert town.answer("complete", task, "h1").code is None
    assert town.answer("accept", task, "h1").code is None
    assert town.helper("h1").completed == 1


def test_repeating_a_release_and_a_cancellation_is_the_same_answer(town):
    town.helpers(2)
    task = town.open().view.task.id
    town.answer("accept", task, "h0")
    assert opened(town.answer("release", task, "h0", "flat tyre")) == ["h1"]
    assert town.answer("release", task, "h0").code is None
    assert town.cancel(task).code is None
    assert town.cancel(task).code is None


def test_the_loser_is_told_why_by_the_first_reason_that_fits(town):
    town.helpers(4)
    task = town.open(width=2).view.task.id
    assert town.answer("accept", task, "h3").code == "NOT_OFFERED"
    assert town.answer("reject", task, "h1").code is None
    assert town.answer("accept", task, "h1").code == "OFFER_CLOSED"
    assert town.answer("accept", task, "h0").code is None
    assert town.answer("accept", task, "h2").code == "ALREADY_TAKEN"
    assert town.answer("accept", task, "h3").code == "ALREADY_TAKEN"
    assert town.answer("complete", task, "h2").code == "NOT_ASSIGNED"
    assert town.answer("release", task, "h2").code == "NOT_ASSIGNED"
    town.cancel(task)
    assert town.answer("accept", task, "h0").code == "TASK_CANCELLED"
    assert town.answer("complete", task, "h0").code == "TASK_CANCELLED"
    assert town.answer("accept", task, "h3").code == "ALREADY_TAKEN"  # it was h0's when it was cancelled


def test_what_has_ended_can_not_be_cancelled(town):
    town.helpers(1)
    done = town.open().view.task.id
    town.answer("accept", done, "h0")
    town.answer("complete", done, "h0")
    assert town.cancel(done).code == "TASK_ENDED"
    nobody = town.open(skills=("violin",)).view.task.id
    assert town.cancel(nobody).code == "TASK_ENDED"


def test_a_released_task_goes_on_and_never_to_the_same_helper_again(town):
    town.helpers(2)
    task = town.open().view.task.id
    town.answer("accept", task, "h0")
    verdict = town.answer("release", task, "h0", "ill")
    assert (verdict.state, opened(verdict), verdict.view.helper) == (TaskState.OFFERED, ["h1"], None)
    verdict = town.answer("reject", task, "h1")
    assert verdict.state is TaskState.TIMED_OUT
    assert town.helper("h0").status(3) is HelperStatus.IDLE


def test_a_released_task_searches_once_more_even_when_its_searches_were_used_up(town):
    town.helpers(1)
    task = town.open().view.task.id
    town.answer("accept", task, "h0")
    town.world.tasks[task].searches = 2
    town.put("new", place=place(41, 29))
    assert opened(town.answer("release", task, "h0")) == ["new"]


def test_at_exhaustion_one_more_search_finds_newcomers(town):
    town.helpers(1)
    task = town.open().view.task.id
    town.put("new", place=place(41, 29))
    verdict = town.answer("reject", task, "h0")
    assert (verdict.state, opened(verdict)) == (TaskState.OFFERED, ["new"])
    verdict = town.answer("reject", task, "new")
    assert (verdict.state, verdict.view.task.reason) == (TaskState.TIMED_OUT, "exhausted")
    assert town.occasions()[-1] == "nobody"


def test_the_end_of_a_search_that_found_nobody_is_a_setting():
    town = Town(Policy(exhausted=TaskState.CANCELLED))
    assert town.open().state is TaskState.CANCELLED


def test_a_wider_search_follows_if_the_radius_grows():
    town = Town(Policy(radius_growth=3.0))
    town.put("far", place=place(41.018, 29))  # two kilometres
    assert town.open().state is TaskState.TIMED_OUT  # this town's search does not grow, the check at the turn does
    assert town.policy.radius_of(1000, 1) == 3000


def test_a_list_that_is_too_old_counts_as_used_up():
    town = Town(Policy(candidates_millis=700_000, searches=1))
    town.helpers(3)
    verdict = town.open()
    town.advance(600)
    verdict = town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    assert opened(verdict) == ["h1"]
    town.advance(600)
    verdict = town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    assert verdict.state is TaskState.TIMED_OUT


@pytest.mark.parametrize(
    "change",
    [
        {"active": False},
        {"place": place(42, 29)},
        {"skills": ()},
    ],
    ids=["inactive", "far away", "unskilled"],
)
def test_a_candidate_is_checked_again_at_its_turn(town, change):
    town.helpers(3, skills=("ilk yardım",))
    task = town.open(skills=("ilk yardım",)).view.task.id
    town.put("h1", **change)
    assert opened(town.answer("reject", task, "h0")) == ["h2"]


def test_a_helper_has_one_open_offer_at_a_time(town):
    town.helpers(2)
    assert opened(town.open()) == ["h0"]
    assert opened(town.open()) == ["h1"]
    assert town.open().state is TaskState.TIMED_OUT


def test_with_a_width_the_first_accept_wins_and_the_others_are_told(town):
    town.helpers(4)
    verdict = town.open(width=3)
    assert opened(verdict) == ["h0", "h1", "h2"]
    assert opened(town.answer("reject", verdict.view.task.id, "h1")) == ["h0", "h2", "h3"]
    verdict = town.answer("accept", verdict.view.task.id, "h2")
    assert (verdict.view.helper, verdict.view.pending) == ("h2", ())
    states = {offer.helper: offer.state for offer in town.world.offers[verdict.view.task.id]}
    assert states[town.helper("h0").id] is states[town.helper("h3").id] is OfferState.WITHDRAWN
    assert town.occasions().count("taken") == 2
    assert [town.helper(name).doing for name in ("h0", "h1", "h3")] == [0, 0, 0]


def test_who_could_not_be_told_is_passed_over_without_blame(town):
    town.helpers(2)
    verdict = town.open()
    verdict = apply(town.world, Skip(verdict.view.task.id, verdict.view.pending[0].offer))
    assert opened(verdict) == ["h1"]
    assert town.helper("h0").timeouts == 0


def test_three_timeouts_in_a_row_pause_a_helper_and_an_answer_in_time_ends_the_row(town):
    town.helpers(1)
    for _ in range(2):
        verdict = town.open()
        town.advance(600)
        town.expire(verdict.view.task.id, verdict.view.pending[0].offer)
    assert town.helper("h0").status(3) is HelperStatus.IDLE
    task = town.open().view.task.id
    town.answer("reject", task, "h0")
    assert town.helper("h0").timeouts == 0
    town.helper("h0").timeouts = 3
    assert town.helper("h0").status(3) is HelperStatus.PAUSED
    assert town.open().state is TaskState.TIMED_OUT
    town.put("h0", active=True)
    assert opened(town.open()) == ["h0"]


def test_the_seeds_ranking_pauses_nobody_and_counts_completions_alone():
    town = Town(Policy(expiry_weight=0, pause_after=NEVER))
    town.helpers(2)
    helper = town.helper("h0")
    helper.month, helper.expired, helper.timeouts = town.world.month, 50, 50
    assert opened(town.open()) == ["h0"]


def test_unknown_tasks_and_helpers_are_missing(town):
    town.helpers(1)
    task = town.open().view.task.id
    assert apply(town.world, Skip(999_999, 1)) == Missing("task")
    assert apply(town.world, Answer("accept", task, "nobody")) == Missing("helper")


def test_a_candidate_who_was_not_loaded_is_asked_in_the_next_round(town):
    town.helpers(2)
    town.world.seen.discard(town.helper("h0").id)
    task = town.task()
    verdict = apply(town.world, Open(task, town.search(task)))
    assert (verdict.wish, verdict.state, task.id in town.world.changes.wishes) == ("proceed", TaskState.SEARCHING, True)
    assert opened(town._follow(verdict)) == ["h0"]
    assert task.id not in town.world.changes.wishes


@pytest.mark.parametrize(("before", "after"), list(itertools.product(TaskState, TaskState)))
def test_a_task_moves_only_along_its_table(before, after):
    task = HelpTask(1, "r", "c", 0, 0, 1000.0, 600.0, 1, 0, state=before)
    if after in TASK_MOVES[before]:
        task.move(after)
        assert task.state is after
    else:
        with pytest.raises(IllegalTransition):
            task.move(after)
        assert task.state is before


@pytest.mark.parametrize(("before", "after"), list(itertools.product(OfferState, OfferState)))
def test_an_offer_moves_only_along_its_table(before, after):
    offer = Offer(1, 1, 1, before, 0, 0, 0.0)
    if after in OFFER_MOVES[before]:
        offer.move(after, 5)
        assert (offer.state, offer.ended_at) == (after, 5)
    else:
        with pytest.raises(IllegalTransition):
            offer.move(after, 5)


def test_an_end_is_an_end():
    assert all(not TASK_MOVES[state] for state in (TaskState.COMPLETED, TaskState.CANCELLED, TaskState.TIMED_OUT))
    assert all(not OFFER_MOVES[state] for state in OfferState if state is not OfferState.OPEN)
