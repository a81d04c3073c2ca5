"""Stamps of Europe/Istanbul, and what is taken for one."""

from __future__ import annotations

import pytest

from ulak.changes import istanbul
from ulak.errors import Invalid

TEN = 1_771_484_400  # 2026-02-19 10:00:00 in Istanbul


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-19T10:00:00",
        "2026-02-19 10:00:00",
        "2026-02-19T10:00:00.999",
        "2026-02-19T10:00:00+03:00",
        "2026-02-19T10:00:00 03:00",
        "2026-02-19T07:00:00Z",
        "2026-02-19T02:00:00-0500",
    ],
)
def test_an_instant_is_understood(text):
    assert istanbul.parse("since", text) == TEN
    assert istanbul.shown(TEN) == "2026-02-19T10:00:00"


@pytest.mark.parametrize(
    "text", ["", "yesterday", "2026-02-19", "2026-02-30T10:00:00", "2026-02-19T25:00:00", "1771484400"]
)
def test_anything_else_is_refused_by_name(text):
    with pytest.raises(Invalid) as refused:
        istanbul.parse("since", text)
    assert refused.value.fields[0][0] == "since"
