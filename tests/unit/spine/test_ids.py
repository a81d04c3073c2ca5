"""Ids: unique, ordered, reversible."""

from __future__ import annotations

import threading
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak.errors import Unavailable
from ulak.ids import EPOCH_MILLIS, FIRST_MARK, MARK_BITS, NODE_REST_MILLIS, NODES, Ids, from_uuid, made_at, to_uuid

NOW = 1_800_000_000_000


def test_ids_are_unique_and_ordered_even_when_a_millisecond_is_used_up():
    ids = Ids(7)
    taken = ids.take_many(NOW, 10_000) + [ids.take(NOW) for _ in range(10)]
    assert taken == sorted(set(taken))
    assert made_at(taken[0]) == NOW
    assert made_at(taken[-1]) == NOW + 2  # borrowed from the milliseconds that follow


def test_a_clock_that_goes_back_does_not_bring_an_id_back():
    ids = Ids()
    first = ids.take(NOW)
    assert ids.take(NOW - 60_000) > first


def test_ids_continue_above_the_newest_that_was_stored():
    newest = Ids().take_many(NOW, 9000)[-1]
    assert Ids(0, made_at(newest)).take(NOW) > newest


def test_two_nodes_never_make_the_same_id():
    one, other = Ids(1), Ids(2)
    assert not set(one.take_many(NOW, 5000)) & set(other.take_many(NOW, 5000))


def test_threads_share_a_generator():
    ids, taken = Ids(), []
    threads = [threading.Thread(target=lambda: taken.extend(ids.take(NOW) for _ in range(2000))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(taken)) == 8000


def test_a_node_that_is_nobody_elses_is_good_for_ever():
    in_2085 = EPOCH_MILLIS + 65 * 365 * 86_400_000
    assert made_at(Ids().take(in_2085)) == in_2085


@pytest.mark.parametrize("take", [lambda ids, now: ids.take(now), lambda ids, now: ids.take_many(now, 3)[-1]])
def test_beyond_the_instant_until_which_the_node_is_ours_no_ids_are_made(take):
    ids = Ids(7, good_until=NOW)
    assert take(ids, NOW)
    with pytest.raises(Unavailable, match="node 7 may be another's; it registers again by itself"):
        take(ids, NOW + 1)


def test_a_renewed_lease_makes_ids_good_for_longer_and_an_older_one_not_for_less():
    ids = Ids(7, good_until=0)
    ids.hold(NOW)
    good_until = ids.good_until
    ids.hold(NOW - 5000)
    assert ids.good_until == good_until > NOW


@pytest.mark.parametrize("lease_millis", [100, 15_000, 3_600_000])
def test_the_last_id_of_a_lost_node_is_older_than_the_first_of_the_next_owner_by_seconds(lease_millis):
    ids = Ids(7, good_until=0)
    ids.hold(NOW + lease_millis)
    declared_dead_at = NOW + lease_millis + 1
    following = Ids(7, declared_dead_at + NODE_REST_MILLIS)
    assert made_at(following.take(0)) - made_at(ids.take(ids.good_until)) > 10_000


@pytest.mark.parametrize("node", [-1, NODES])
def test_a_node_out_of_range_is_refused(node):
    with pytest.raises(ValueError, match="out of range"):
        Ids(node)


@given(st.integers(0, (1 << 63) - 1))
def test_an_id_survives_the_way_to_a_uuid_and_back(identifier):
    assert from_uuid(to_uuid(identifier)) == identifier


MARKS = st.integers(0, (1 << MARK_BITS) - 1)


@given(st.integers(0, (1 << 63) - 1), MARKS)
def test_an_id_is_marked_by_its_store_and_read_back_there_only(identifier, mark):
    ours, other = Ids(mark=mark), Ids(mark=mark ^ 1)
    assert ours.from_uuid(ours.to_uuid(identifier)) == identifier
    assert ours.to_text(identifier) == str(ours.to_uuid(identifier))
    assert other.to_uuid(identifier) != ours.to_uuid(identifier)
    assert other.from_uuid(ours.to_text(identifier)) is None or mark == FIRST_MARK
    assert ours.from_uuid(to_uuid(identifier)) == identifier  # made before stores had marks


def test_text_that_is_not_a_uuid_is_nobodys_id():
    assert Ids().from_uuid("nonsense") is None


@given(st.uuids(version=4))
def test_a_uuid_of_somebody_else_is_not_taken_for_ours(value):
    assert from_uuid(value) is None


def test_uuids_of_ours_are_version_8_and_in_the_order_of_their_ids():
    ids = Ids().take_many(NOW, 5000)
    uuids = [to_uuid(one) for one in ids]
    assert uuids == sorted(uuids)
    assert {(one.version, one.variant) for one in uuids} == {(8, uuid.RFC_4122)}


def test_the_ids_of_the_next_decades_fit_into_63_bits():
    in_2085 = EPOCH_MILLIS + 65 * 365 * 86_400_000
    assert 0 < Ids(NODES - 1).take(in_2085) < 1 << 63
