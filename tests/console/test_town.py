"""The map of dispatch: what it names, and where the words stand."""

from __future__ import annotations

import math

import pytest

from ulak.console.town import TALL, WIDE, draw_town

HELPERS = [
    {"id": "zeynep", "name": "Zeynep Deneme", "status": "IDLE", "latitude": 40.990, "longitude": 29.029},
    {"id": "ozan", "name": None, "status": "IDLE", "latitude": 40.996, "longitude": 29.037},
]


def drawn(latitude, longitude, radius):
    task = {
        "id": "t", "status": "SEARCHING", "category": "pharmacy", "latitude": latitude, "longitude": longitude,
        "radiusMeters": radius, "taskCandidates": ["zeynep", "ozan"],
    }  # fmt: skip
    return draw_town([task], HELPERS, task)


def test_a_name_on_the_map_is_the_first_one_or_the_id():
    assert [one["text"] for one in drawn(40.993, 29.033, 500)["labels"]] == ["Zeynep", "ozan"]


@pytest.mark.parametrize(("latitude", "radius"), [(40.990, 500), (40.999, 900), (40.990, 900), (40.993, 700)])
def test_the_reach_is_named_at_its_own_line_within_the_picture(latitude, radius):
    reach = drawn(latitude, 29.033, radius)["reach"]
    x, y = reach["label"]
    assert 0 < x < WIDE
    assert 0 < y < TALL
    assert abs(math.hypot(x - reach["x"], y - reach["y"]) - reach["r"]) < 20
