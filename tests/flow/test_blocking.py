"""The blocking client: the same Ulak for a script without a loop; a worker elsewhere does the work."""

from __future__ import annotations

import os
import threading

import pytest

from ulak import BlockingUlak, Conflict, NewJob, Ulak, Unavailable
from ulak.testing import drain


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "ulak-blocking"]


def test_a_script_enqueues_and_looks_without_a_loop_of_its_own(sqlite_address):
    with BlockingUlak(sqlite_address) as ulak:
        first = ulak.enqueue("mail.send", {"to": "a"}, key="k")
        others = ulak.enqueue_many([NewJob("mail.send", {"to": "b"}), NewJob("mail.send")])
        offered = ulak.offer("mail.send", {"to": "c"})
        assert ulak.get(first).payload == {"to": "a"}
        assert ulak.get(first).status == "ready"
        listed = ulak.call(ulak.inner.jobs.list, kind="mail.send")
    assert {record.id for record in listed} == {first, *others, offered}
    assert threads() == []


def test_a_store_that_cannot_be_opened_is_an_error_and_leaves_no_thread(sqlite_address):
    with BlockingUlak(sqlite_address), pytest.raises(Conflict), BlockingUlak(sqlite_address):
        pass
    assert threads() == []


async def test_what_a_script_left_behind_is_done_by_a_worker(sqlite_address, recorder):
    with BlockingUlak(sqlite_address) as script:
        identifier = script.enqueue("mail.send", {"to": "a"})
    ulak = Ulak(sqlite_address)
    ulak.handles("mail.send")(recorder.__call__)
    async with ulak:
        await drain(ulak)
        assert (await ulak.jobs.get(identifier)).status == "done"


def test_outside_its_with_it_says_so_instead_of_waiting_for_ever(sqlite_address):
    ulak = BlockingUlak(sqlite_address)
    with pytest.raises(Unavailable, match="not open here"):
        ulak.enqueue("mail.send")
    with ulak:
        ulak.enqueue("mail.send")
    with pytest.raises(Unavailable, match="not open here"):
        ulak.enqueue("mail.send")


def test_a_forked_child_is_told_that_the_loop_stayed_with_its_parent(sqlite_address):
    with BlockingUlak(sqlite_address) as ulak:
        child = os.fork()
        if child == 0:
            try:
                ulak.enqueue("mail.send")
            except Unavailable:
                ulak.__exit__(None, None, None)
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert ulak.enqueue("mail.send")


def test_a_call_from_its_own_loop_is_refused(sqlite_address):
    with BlockingUlak(sqlite_address) as ulak:

        async def verb() -> int:
            return ulak.enqueue("mail.send")

        with pytest.raises(Conflict, match="await"):
            ulak.call(verb)
