"""Labels of a drawn timeline: beside their bars, and on no other."""

from __future__ import annotations

import pytest

from ulak.console.timeline import Bar, labelled


def bar(x, width):
    return Bar("deferred", "deferred", "soft-bar", x, width, "deferred 5.2 s")


@pytest.mark.parametrize(
    ("bars", "sides"),
    [
        ([bar(0, 20)], ["right"]),
        ([bar(70, 20)], ["left"]),
        ([bar(5, 90)], ["above"]),
        ([bar(0, 52), bar(52, 33)], ["above", "above"]),  # two waits in a row
        ([bar(0, 10), bar(60, 10)], ["right", "left"]),
    ],
)
def test_a_label_stands_where_there_is_capacity(bars, sides):
    assert [one.side for one in labelled(bars)] == sides
    assert all(one.label for one in labelled(bars))


def test_a_label_that_would_cover_another_bar_is_left_to_the_table():
    narrow = labelled([bar(0, 5), bar(5, 5), bar(10, 5)])
    assert [one.label for one in narrow] == ["", "", "deferred 5.2 s"]
