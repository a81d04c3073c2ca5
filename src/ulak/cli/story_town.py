"""The map of the story's town, as GeoJSON: a coast, a stream, parks and streets, all of them invented."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

NAME = "Masalköy (simulated)"
METERS_PER_DEGREE = 111_320

Points = list[tuple[float, float]]

# Metres east and north of the middle of the town. Corners are rounded afterwards.
AREAS: dict[str, list[Points]] = {
    "water": [
        [(-1900, -620), (-1250, -640), (-800, -760), (-300, -800), (250, -740), (800, -820), (1900, -760),
         (1900, -1500), (-1900, -1500)],
        [(330, 1500), (350, 980), (240, 620), (300, 330), (200, 60), (60, -180), (20, -480), (-60, -860), (-10, -860),
         (75, -480), (115, -200), (255, 40), (355, 330), (295, 620), (405, 980), (385, 1500)],
    ],
    "park": [
        [(-1010, 420), (-720, 540), (-560, 430), (-610, 240), (-900, 210)],
        [(620, -300), (900, -220), (1010, -390), (860, -560), (640, -500)],
        [(-230, 160), (-60, 190), (-40, 40), (-210, 20)],
    ],
}  # fmt: skip
STREETS: dict[str, list[Points]] = {
    "main": [
        [(-1900, -520), (-1200, -540), (-780, -650), (-280, -690), (260, -630), (820, -700), (1900, -650)],
        [(-1900, 90), (-900, 130), (-330, 60), (160, 150), (700, 110), (1900, 200)],
        [(-420, 1500), (-400, 700), (-330, 60), (-380, -320), (-280, -690)],
        [(-330, 60), (100, 420), (560, 600), (1200, 640), (1900, 760)],
    ],
    "road": [
        [(-1300, 1500), (-1180, 600), (-1230, 105), (-1200, -540)],
        [(-1900, 620), (-1180, 600), (-400, 700), (-60, 760), (240, 840)],
        [(-1230, -220), (-800, -180), (-380, -320), (60, -330), (420, -250), (700, 110)],
        [(-800, 125), (-820, -180), (-780, -650)],
        [(-620, 110), (-600, -200), (-560, -690)],
        [(-60, 760), (-80, 330), (-30, 110)],
        [(480, 128), (500, 420), (470, 570)],
        [(860, 118), (840, 360), (880, 620), (820, 1500)],
        [(1180, 140), (1160, 420), (1200, 640)],
        [(500, 420), (840, 360), (1160, 420), (1900, 480)],
        [(420, -250), (380, -480), (440, -650)],
        [(720, 110), (1060, -80), (1180, -360), (1120, -690)],
        [(-1180, 600), (-760, 620), (-400, 420), (-80, 330)],
        [(130, 152), (180, 420)],
        [(-380, -320), (-180, -480), (60, -500), (380, -480)],
        [(1060, -80), (1900, -120)],
    ],
}


def town_map(latitude: float, longitude: float) -> dict[str, Any]:
    """Around a middle; `look` says what a line or an area is."""
    east = METERS_PER_DEGREE * math.cos(math.radians(latitude))

    def placed(points: Points) -> list[list[float]]:
        return [[round(longitude + x / east, 5), round(latitude + y / METERS_PER_DEGREE, 5)] for x, y in points]

    areas = [(look, "Polygon", [placed(_ring(one))]) for look, found in AREAS.items() for one in found]
    streets = [(look, "LineString", placed(_rounded(one))) for look, found in STREETS.items() for one in found]
    features = [
        {"type": "Feature", "properties": {"look": look}, "geometry": {"type": kind, "coordinates": coordinates}}
        for look, kind, coordinates in (*areas, *streets)
    ]
    return {"type": "FeatureCollection", "name": NAME, "features": features}


def _ring(points: Points) -> Points:
    rounded = _rounded([points[-1], *points, points[0]])[2:-2]
    return [*rounded, rounded[0]]


def _rounded(points: Points, times: int = 2) -> Points:
    """Each corner is cut twice, a quarter before and after it; the ends stay."""
    for _ in range(times):
        cut = [
            (a[0] + (b[0] - a[0]) * part, a[1] + (b[1] - a[1]) * part)
            for a, b in pairwise(points)
            for part in (0.25, 0.75)
        ]
        points = [points[0], *cut[1:-1], points[-1]]
    return points
