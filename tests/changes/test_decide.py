"""Guards, stamps, windows and pages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ulak.changes import decide
from ulak.changes.decide import GuardLimits, Window
from ulak.changes.model import Cursor, Feed
from ulak.changes.pipeline.differ import FeedDelta
from ulak.changes.state import EMPTY, state_hash
from ulak.errors import Gone, Invalid

DAY = 86_400
NOW = 1_800_000_000
FEED = Feed(
    "einvoice",
    "gib",
    "0011aabb",
    1000,
    1000,
    None,
    NOW,
    NOW,
    1000,
    {"PK": 1000, "GB": 500},
    EMPTY,
    state_hash(EMPTY),
    0,
    0,
)


def judged(feed=FEED, limits=None, **numbers):
    return decide.judge({"einvoice": feed}, {"einvoice": FeedDelta("", **numbers)}, limits or GuardLimits())


@pytest.mark.parametrize(("removed", "withheld"), [(0, False), (100, False), (101, True)])
def test_removals_are_withheld_above_a_tenth(removed, withheld):
    assert bool(judged(removed=removed).withheld) is withheld


def test_a_small_number_of_removals_is_never_withheld():
    feed = replace(FEED, count=10)
    assert judged(feed, removed=3).withheld
    assert not judged(feed, GuardLimits(removal_floor=3), removed=3).withheld


@pytest.mark.parametrize(
    ("numbers", "word"),
    [
        ({"modified": 501}, "modified"),
        ({"lost_aliases": {"GB": 51}}, "aliases"),
        ({"added": 501}, "number of records"),
        ({"removed": 501}, "number of records"),
    ],
)
def test_a_list_that_changes_too_much_is_put_into_quarantine(numbers, word):
    assert word in judged(**numbers).quarantine


@pytest.mark.parametrize("numbers", [{"modified": 500}, {"lost_aliases": {"GB": 50, "PK": 100}}, {"added": 500}])
def test_what_is_just_allowed_is_published(numbers):
    assert judged(**numbers).quarantine is None


def test_with_few_records_only_the_removal_guard_is_on():
    feed = replace(FEED, count=99, aliases={"PK": 99})
    verdict = judged(feed, modified=99, removed=98, lost_aliases={"PK": 99})
    assert verdict.quarantine is None
    assert verdict.withheld


def test_an_approval_switches_the_guards_off():
    verdict = judged(limits=GuardLimits(ceiling=5000), removed=900, modified=900)
    assert not verdict.withheld
    assert verdict.quarantine is None


def test_stamps_rise_within_one_second_and_when_the_clock_goes_back():
    assert decide.next_stamp(NOW * 1000 + 999, {"einvoice": replace(FEED, stamp=None)}) == NOW
    assert decide.next_stamp(NOW * 1000, {"einvoice": FEED}) == NOW + 1
    assert decide.next_stamp((NOW - 500) * 1000, {"einvoice": FEED}) == NOW + 1


def test_the_page_of_a_window_is_arithmetic():
    window = Window(1000, 1250, NOW)
    assert window.total == 250
    assert decide.pages(250, 100) == 3
    assert decide.pages(0, 100) == 0
    assert decide.page_of(window, 1, 100) == (1000, 1100)
    assert decide.page_of(window, 3, 100) == (1200, 1250)
    assert decide.page_of(window, 4, 100) == (1250, 1250)


@pytest.mark.parametrize(("page", "size", "name"), [(0, 1, "page"), (1, 0, "pageSize"), (1, 1001, "pageSize")])
def test_a_wrong_page_is_named(page, size, name):
    with pytest.raises(Invalid) as refused:
        decide.check_page(page, size)
    assert refused.value.fields[0][0] == name


def gone(feed, since, *, days=30):
    try:
        decide.check_since(feed, since, NOW * 1000, days)
    except Gone as error:
        return error.extra["reason"]
    return None


def test_before_the_retention_window_is_gone():
    feed = replace(FEED, head_stamp=NOW)
    assert gone(feed, NOW - 30 * DAY) is None
    assert gone(feed, NOW - 30 * DAY - 1) == "expired"
    assert gone(feed, NOW - 31 * DAY, days=60) is None


def test_at_or_past_the_head_nothing_is_ever_gone():
    quiet = replace(FEED, head_stamp=NOW - 90 * DAY, stamp=NOW)
    assert gone(quiet, NOW - 90 * DAY) is None
    assert gone(quiet, NOW - 40 * DAY) is None
    assert gone(quiet, NOW - 91 * DAY) == "expired"


def test_what_was_pruned_stays_gone_when_retention_is_raised():
    feed = replace(FEED, floor_stamp=NOW - 20 * DAY)
    assert gone(feed, NOW - 25 * DAY, days=365) == "expired"
    assert gone(feed, NOW - 20 * DAY, days=365) is None


@pytest.mark.parametrize(
    ("cursor", "reason"),
    [(Cursor("ffffffff", 1000), "epoch"), (Cursor("0011aabb", 1001), "unknown"), (Cursor("0011aabb", 999), "expired")],
)
def test_a_cursor_that_does_not_fit_says_why(cursor, reason):
    with pytest.raises(Gone) as refused:
        decide.check_cursor(FEED, cursor)
    assert refused.value.location == "/api/v1/einvoice/archives/latest"
    assert refused.value.extra == {
        "reason": reason,
        "oldest": "0011aabb-1000",
        "head": "0011aabb-1000",
        "bootstrap": "/api/v1/einvoice/archives/latest",
    }
