"""The overview's chart: round figures at its axis, and most of its height used."""

from __future__ import annotations

import re

import pytest

from ulak.console.charts import STEPS, nice
from ulak.console.console import ASSETS


@pytest.mark.parametrize(("value", "step"), [(0.34, 0.5), (1, 1), (1.1, 2), (20.3, 25), (26, 50), (67, 100)])
def test_an_axis_has_round_figures(value, step):
    assert nice(value) == step


def test_the_script_draws_the_same_axis():
    (steps,) = re.findall(r"return \[([0-9., ]+)\]\.map", (ASSETS / "console.js").read_text("utf-8"))
    assert tuple(map(float, steps.split(", "))) == STEPS
