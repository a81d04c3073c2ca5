"""Whole flows on both stores: offers, deadlines, answers, messages and restarts, by a clock that the test moves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from tests.dispatch.conftest import HERE, asked, request, said, settle_in
from tests.flow.stores import events_with
from ulak.clock import to_datetime
from ulak.dispatch import records
from ulak.dispatch.command import Answer
from ulak.dispatch.forms import NamedPosition
from ulak.dispatch.model import HelperStatus, TaskState
from ulak.dispatch.nearby.bbox import parse_box
from ulak.dispatch.prune import prune_tasks
from ulak.dispatch.refusal import AnswerRefused
from ulak.errors import Conflict, Invalid, NotFound, Unavailable
from ulak.testing import advance, drain, enqueued


async def test_an_accepted_task_is_assigned_and_everybody_hears_of_it(ulak):
    await settle_in(ulak, 2)
    view = await ulak.dispatch.open(request())
    assert (view.task.state, asked(view), view.waiting) == (TaskState.OFFERED, ["h0"], ("h1",))
    view = await ulak.dispatch.accept(view.task.id, "h0")
    assert (view.task.state, view.helper) == (TaskState.ASSIGNED, "h0")
    await drain(ulak)
    assert await said(ulak, "h0") == ["Yakınında yeni bir talep var! Kabul etmek için 10 dakikan var."]
    assert await said(ulak, "ayşe") == ["H0 yola çıktı!"]
    view = await ulak.dispatch.complete(view.task.id, "h0")
    assert view.task.state is TaskState.COMPLETED
    helper = await ulak.dispatch.helper("h0")
    assert (helper.completed, helper.status(3)) == (1, HelperStatus.IDLE)


async def test_an_expired_offer_goes_to_the_next_candidate(ulak):
    await settle_in(ulak, 2)
    task = (await ulak.dispatch.open(request(deadlineSeconds=30))).task.id
    await drain(ulak)
    await advance(ulak, 30)
    view = await ulak.dispatch.task(task)
    assert asked(view) == ["h1"]
    assert (await ulak.dispatch.helper("h0")).timeouts == 1
    await advance(ulak, 30)
    view = await ulak.dispatch.task(task)
    assert view.task.state is TaskState.TIMED_OUT
    await drain(ulak)
    assert await said(ulak, "ayşe") == ["Maalesef şu an uygun öğrenci bulunamadı."]
    assert await said(ulak, "h0") == ["Yakınında yeni bir talep var! Kabul etmek için 30 saniyen var."]


async def test_a_clock_that_is_set_back_does_not_lengthen_what_is_left_of_a_deadline(ulak, clock):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    clock.step(-3600)
    view = await ulak.dispatch.task(task)
    assert view.pending[0].deadline_at - view.now <= 600_000


async def test_an_answer_stops_the_clock_of_its_offer(ulak):
    await settle_in(ulak, 2)
    task = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.reject(task, "h0")
    await ulak.dispatch.accept(task, "h1")
    await drain(ulak)
    counts = await ulak.jobs.counts()
    assert not sum(number for number in counts.get("dispatch.expire", {}).values() if isinstance(number, int))
    await advance(ulak, 3600)
    assert (await ulak.dispatch.task(task)).task.state is TaskState.ASSIGNED


async def test_a_late_answer_is_refused_before_the_timer_has_fired(make, clock):
    async with make(work=False) as ulak:
        await settle_in(ulak, 2)
        task = (await ulak.dispatch.open(request())).task.id
        clock.advance(600)
        with pytest.raises(AnswerRefused) as refused:
            await ulak.dispatch.accept(task, "h0")
        assert refused.value.code == "OFFER_EXPIRED"
        assert asked(await ulak.dispatch.task(task)) == ["h1"]


async def test_of_many_who_accept_at_once_one_wins(ulak):
    names = await settle_in(ulak, 20)
    view = await ulak.dispatch.open(request(width=20))
    answers = await asyncio.gather(
        *(ulak.dispatch.accept(view.task.id, name) for name in names), return_exceptions=True
    )
    losers = [one.code for one in answers if isinstance(one, AnswerRefused)]
    assert (len(losers), set(losers)) == (19, {"ALREADY_TAKEN"})
    await drain(ulak)
    busy = await ulak.dispatch.helpers(status="BUSY")
    assert len(busy) == 1
    assert len(await ulak.dispatch.helpers(status="IDLE")) == 19
    told = [await said(ulak, name) for name in names]
    assert sum("Talep başka birine verildi; artık cevaplaman gerekmiyor." in one for one in told) == 19


async def test_an_answer_that_was_decided_from_a_past_state_is_undone(ulak, monkeypatch):
    await settle_in(ulak, 2)
    task = (await ulak.dispatch.open(request(width=2))).task.id
    load, seen = records.load_tasks, {}

    def load_past(tx, world, ids):
        past = SimpleNamespace(rows=lambda query, **given: seen.setdefault(query.name, tx.rows(query, **given)))
        load(past, world, ids)

    monkeypatch.setattr(records, "load_tasks", load_past)
    await ulak.dispatch.accept(task, "h0")
    with pytest.raises(Unavailable, match="has changed meanwhile"):
        await ulak.dispatch.accept(task, "h1")
    await drain(ulak)
    assert (await ulak.dispatch.task(task)).task.helper_name == "h0"
    assert (await ulak.dispatch.helper("h1")).doing == 0
    assert await said(ulak, "ayşe") == ["H0 yola çıktı!"]


async def test_a_restart_ends_what_is_overdue(make, clock, address):
    if address == "memory:":
        pytest.skip("memory: keeps nothing")
    async with make() as ulak:
        await settle_in(ulak, 2)
        task = (await ulak.dispatch.open(request())).task.id
    clock.advance(601)
    async with make() as ulak:
        await drain(ulak)
        assert asked(await ulak.dispatch.task(task)) == ["h1"]


async def test_an_answer_stands_though_what_follows_it_is_hindered(ulak, monkeypatch):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id

    async def hindered(_verdict):
        raise Unavailable("another transaction holds what this one needs")

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(ulak.dispatch.progress, "_following", hindered)
        assert (await ulak.dispatch.reject(task, "h0")).task.state is TaskState.SEARCHING
    await drain(ulak)
    await advance(ulak, 3)
    assert (await ulak.dispatch.task(task)).task.state is TaskState.TIMED_OUT


async def test_newcomers_are_found_by_the_further_search(ulak):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.put_helper("new", HERE)
    view = await ulak.dispatch.reject(task, "h0")
    assert asked(view) == ["new"]
    explained = await ulak.dispatch.explain(task)
    assert [[one.helper for one in search.ranked] for search in explained] == [["h0"], ["new"]]
    assert explained[1].counts == {"asked": 1}


async def test_a_longer_list_than_a_transaction_looks_at_is_walked_to_its_end(ulak):
    names = await settle_in(ulak, 150)
    task = (await ulak.dispatch.open(request(radiusMeters=5000))).task.id
    for name in names[1:149]:
        await ulak.dispatch.put_helper(name, {"isActive": False})
    view = await ulak.dispatch.reject(task, "h0")
    assert asked(view) == ["h149"]


async def test_a_task_whose_caller_died_before_the_further_search_goes_on_by_itself(ulak):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    service = ulak.dispatch
    verdict = await service.progress.submit(Answer("reject", task, "h0"))
    assert (verdict.wish, verdict.state) == ("search", TaskState.SEARCHING)
    await advance(ulak, 3)
    assert (await service.task(task)).task.state is TaskState.TIMED_OUT


async def test_positions_in_bulk_are_hints_that_are_written_soon(ulak, clock):
    await settle_in(ulak, 2)
    clock.advance(1)
    unknown = await ulak.dispatch.move_many([NamedPosition("h0", 52.0, 13.0), NamedPosition("nobody", 1.0, 1.0)])
    assert (unknown, len(ulak.dispatch.hints)) == (["nobody"], 1)
    await ulak.dispatch.flush_positions()
    assert [(await ulak.dispatch.helper("h0")).latitude, len(ulak.dispatch.hints)] == [52_000_000_000, 0]


async def test_a_box_on_the_map_lists_who_is_in_it(ulak):
    await ulak.dispatch.put_helper("fiji", {"latitude": -17.0, "longitude": 179.9})
    await ulak.dispatch.put_helper("taveuni", {"latitude": -16.9, "longitude": -179.9})
    await ulak.dispatch.put_helper("istanbul", HERE)
    found = await ulak.dispatch.helpers(bbox=parse_box("179,-18,-179,-16"))
    assert [one.helper for one in found] == ["fiji", "taveuni"]
    assert [one.helper for one in await ulak.dispatch.helpers(bbox=parse_box("-180,-90,180,90"))] == [
        "fiji",
        "istanbul",
        "taveuni",
    ]
    assert [one.helper for one in await ulak.dispatch.helpers(after="fiji", limit=1)] == ["istanbul"]


async def test_a_helper_with_work_is_not_forgotten(ulak):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    with pytest.raises(Conflict):
        await ulak.dispatch.forget_helper("h0")
    await ulak.dispatch.reject(task, "h0")
    await ulak.dispatch.forget_helper("h0")
    with pytest.raises(NotFound):
        await ulak.dispatch.helper("h0")
    view, steps = await ulak.dispatch.task_with_timeline(task)
    assert view.task.state is TaskState.TIMED_OUT
    assert [(step.what, step.helper) for step in steps] == [
        ("opened", None),
        ("searched", None),
        ("offered", "h0"),
        ("rejected", "h0"),
        ("searched", None),
        ("timed_out", None),
    ]


async def test_steps_of_one_millisecond_are_told_as_they_happened(ulak):
    await settle_in(ulak, 4)
    task = (await ulak.dispatch.open(request(width=3))).task.id
    for helper in ("h0", "h2"):
        await ulak.dispatch.reject(task, helper)
    await ulak.dispatch.accept(task, "h3")
    await ulak.dispatch.release(task, "h3")
    _, steps = await ulak.dispatch.task_with_timeline(task)
    assert len({step.at for step in steps}) == 1
    assert [f"{step.what} {step.helper or ''}".strip() for step in steps] == [
        "opened", "searched", "offered h0", "offered h1", "offered h2", "rejected h0", "offered h3", "rejected h2",
        "accepted h3", "withdrawn h1", "released h3", "searched", "timed_out",
    ]  # fmt: skip


async def test_bad_input_names_each_field(ulak):
    with pytest.raises(Invalid) as refused:
        await ulak.dispatch.open({"latitude": 91, "radiusMeters": 0, "width": 0, "who": 1})
    named = {field for field, _ in refused.value.fields}
    assert named == {"latitude", "longitude", "radiusMeters", "width", "who", "requesterId", "category"}


async def test_lists_go_on_after_their_last_item(ulak):
    for _ in range(3):
        await ulak.dispatch.open(request(skills=["nobody has this"]))
    first = await ulak.dispatch.tasks(limit=2)
    rest = await ulak.dispatch.tasks(after=first[-1].task.id, limit=2)
    assert [len(first), len(rest)] == [2, 1]
    assert len(await ulak.dispatch.tasks(status="TIMED_OUT", requester="ayşe")) == 3
    assert await ulak.dispatch.tasks(status="ASSIGNED") == []
    assert await ulak.dispatch.tasks(helper="h0") == []


async def test_pulling_offers_ends_a_pause(ulak):
    await settle_in(ulak, 1)
    for _ in range(3):
        await ulak.dispatch.open(request(deadlineSeconds=1))
        await advance(ulak, 1)
    assert (await ulak.dispatch.helper("h0")).status(3) is HelperStatus.PAUSED
    assert (await ulak.dispatch.open(request())).task.state is TaskState.TIMED_OUT
    assert await ulak.dispatch.offers("h0") == []
    assert asked(await ulak.dispatch.open(request())) == ["h0"]
    (offer,) = await ulak.dispatch.offers("h0")
    assert (offer.category, offer.distance) == ("market", 0.0)


async def test_fairness_is_told_of_those_who_are_active(ulak):
    await settle_in(ulak, 2)
    task = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.accept(task, "h0")
    await ulak.dispatch.complete(task, "h0")
    figures = await ulak.dispatch.fairness()
    assert (figures.helpers, figures.gini, figures.acceptance_rate) == (2, 0.5, 1.0)


async def test_an_offer_whose_timer_was_lost_ends_all_the_same(ulak, clock):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    for job in await enqueued(ulak, "dispatch.expire"):
        await ulak.jobs.cancel(job.id)
    await advance(ulak, 600)
    assert asked(await ulak.dispatch.task(task)) == ["h0"]
    await advance(ulak, 31)
    await ulak.dispatch.progress.expire_overdue(30_000)
    await advance(ulak, 3)  # the room may have come first, and may still be searching
    assert (await ulak.dispatch.task(task)).task.state is TaskState.TIMED_OUT


async def test_a_lost_timer_is_found_while_the_figures_take_too_long(ulak, monkeypatch):
    async def fail():
        raise Unavailable("a read was ended after 2 s")

    monkeypatch.setattr(ulak.dispatch, "fairness", fail)
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    for job in await enqueued(ulak, "dispatch.expire"):
        await ulak.jobs.cancel(job.id)
    await advance(ulak, 600)
    for _ in range(20):
        await advance(ulak, 5)
    assert (await ulak.dispatch.task(task)).task.state is TaskState.TIMED_OUT


async def test_a_message_for_an_offer_is_not_sent_after_its_deadline(make, clock):
    async with make(work=False) as ulak:
        await settle_in(ulak, 1)
        await ulak.dispatch.open(request(deadlineSeconds=30))
        (message,) = await enqueued(ulak, "notify.in_app")
        assert message.expires_at == to_datetime(clock.now() + 30_000)


async def test_old_tasks_are_pruned_with_all_that_belongs_to_them(ulak, clock):
    await settle_in(ulak, 2)
    task = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.accept(task, "h0")
    live = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.complete(task, "h0")
    clock.advance(91 * 86_400)
    assert await ulak.store.write(prune_tasks, 90 * 86_400_000) == 1
    with pytest.raises(NotFound):
        await ulak.dispatch.task(task)
    assert (await ulak.dispatch.task(live)).task.id == live
    assert await ulak.store.write(prune_tasks, 90 * 86_400_000) == 0


async def test_events_tell_what_happened_in_order(ulak):
    await settle_in(ulak, 1)
    task = (await ulak.dispatch.open(request())).task.id
    await ulak.dispatch.accept(task, "h0")
    await ulak.dispatch.complete(task, "h0")
    events = await events_with(ulak, "dispatch.task.completed")
    assert [event.name for event in events if event.name.startswith("dispatch.")] == [
        "dispatch.task.opened",
        "dispatch.offer.opened",
        "dispatch.offer.accepted",
        "dispatch.task.assigned",
        "dispatch.task.completed",
    ]
