"""The map of dispatch: helpers and tasks of some kilometres as points of a drawing, with what ties them together."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ulak.console.labels import place_labels
from ulak.console.outline import NO_OUTLINE, MapLine, Outline

WIDE, TALL, MARGIN = 800, 520, 50
METERS_PER_DEGREE = 111_320
MIN_METERS = 1200
LAYERS = ("park", "water", "casing", "road", "main", "outline")
OPEN = ("SEARCHING", "OFFERED", "ASSIGNED")


@dataclass(frozen=True, slots=True)
class Projection:
    """Plane enough for a town: north is up, a metre is as long everywhere."""

    south: float
    west: float
    north: float
    east: float

    @property
    def shrink(self) -> float:
        return math.cos(math.radians((self.south + self.north) / 2))

    @property
    def per_meter(self) -> float:
        tall = max((self.north - self.south) * METERS_PER_DEGREE, MIN_METERS)
        wide = max((self.east - self.west) * METERS_PER_DEGREE * self.shrink, MIN_METERS)
        return min((TALL - 2 * MARGIN) / tall, (WIDE - 2 * MARGIN) / wide)

    def place(self, latitude: float, longitude: float) -> tuple[float, float]:
        up = (latitude - (self.south + self.north) / 2) * METERS_PER_DEGREE
        right = (longitude - (self.west + self.east) / 2) * METERS_PER_DEGREE * self.shrink
        return round(WIDE / 2 + right * self.per_meter, 1), round(TALL / 2 - up * self.per_meter, 1)


def draw_town(
    tasks: Sequence[Mapping[str, Any]],
    helpers: Sequence[Mapping[str, Any]],
    chosen: Mapping[str, Any] | None,
    outline: Outline = NO_OUTLINE,
) -> dict[str, Any] | None:
    """None without anybody whose place is known."""
    known = [one for one in helpers if one.get("latitude") is not None]
    shown = [one for one in tasks if one["status"] in OPEN or one is chosen]
    if not known and not shown:
        return None
    points = [(one["latitude"], one["longitude"]) for one in (*known, *shown)]
    lats, lons = [point[0] for point in points], [point[1] for point in points]
    plane = Projection(min(lats), min(lons), max(lats), max(lons))
    concerned = _concerned(shown, chosen)
    squares = [_task(one, plane, number, chosen) for number, one in enumerate(shown, 1)]
    discs = [_helper(one, plane, concerned) for one in known]
    return {
        "wide": WIDE,
        "tall": TALL,
        "tasks": squares,
        "helpers": discs,
        "labels": place_labels([one for one in discs if one["named"]], [*squares, *discs]),
        "ties": [tie for one in shown for tie in _ties(one, known, plane)],
        "reach": None if chosen is None else _reach(chosen, plane),
        "scale": round(500 * plane.per_meter, 1),
        "side": _side(next((one["x"] for one in squares if one["chosen"]), WIDE / 2)),
        "name": outline.name,
        "outline": _drawn(outline, plane),
    }


def _side(x: float) -> str:
    """The part of the map that a narrow screen shows: where the chosen task is."""
    return "start" if x < WIDE / 3 else "end" if x > WIDE * 2 / 3 else "center"


def _drawn(outline: Outline, plane: Projection) -> list[tuple[str, str]]:
    """Areas below streets, and wide streets with an edge; a class and a path each."""
    paths = [(line.look, path) for line in outline.lines if (path := _path(line, plane))]
    edges = [("casing", path) for look, path in paths if look == "main"]
    return sorted((*edges, *paths), key=lambda one: LAYERS.index(one[0]))


def _path(line: MapLine, plane: Projection) -> str:
    """Points that fall on one another are one; a line that lies outside the picture is left out."""
    places = [place for place, _ in groupby(plane.place(*point) for point in line.points)]
    across, down = [x for x, _ in places], [y for _, y in places]
    if len(places) < 2 or max(across) < 0 or min(across) > WIDE or max(down) < 0 or min(down) > TALL:
        return ""
    return "M" + "L".join(f"{x} {y}" for x, y in places)


def asked_of(task: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {one["helperId"]: one for one in task.get("pendingAssignments") or ()}


def _concerned(tasks: Sequence[Mapping[str, Any]], chosen: Mapping[str, Any] | None) -> set[str]:
    names = {name for one in tasks for name in (*asked_of(one), one.get("helperId"))}
    return {name for name in (*names, *((chosen or {}).get("taskCandidates") or ())) if name}


def _task(task: Mapping[str, Any], plane: Projection, number: int, chosen: Mapping[str, Any] | None) -> dict[str, Any]:
    x, y = plane.place(task["latitude"], task["longitude"])
    return {"x": x, "y": y, "number": number, "id": task["id"], "status": task["status"], "category": task["category"],
            "chosen": task is chosen, "full": task["status"] == "ASSIGNED"}  # fmt: skip


def _helper(helper: Mapping[str, Any], plane: Projection, concerned: set[str]) -> dict[str, Any]:
    x, y = plane.place(helper["latitude"], helper["longitude"])
    name = helper.get("name") or helper["id"]
    return {"x": x, "y": y, "name": name, "short": name.strip().partition(" ")[0], "status": helper["status"],
            "named": helper["id"] in concerned, "asked": helper["status"] == "OFFERED"}  # fmt: skip


def _ties(
    task: Mapping[str, Any], helpers: Sequence[Mapping[str, Any]], plane: Projection
) -> list[tuple[float, float, float, float, bool]]:
    """Dashed to those who are asked, solid to the one who came."""
    x, y = plane.place(task["latitude"], task["longitude"])
    asked = asked_of(task)
    return [
        (x, y, *plane.place(one["latitude"], one["longitude"]), one["id"] in asked)
        for one in helpers
        if one["id"] in asked or (one["id"] == task.get("helperId") and task["status"] == "ASSIGNED")
    ]


def _reach(task: Mapping[str, Any], plane: Projection) -> dict[str, Any]:
    """Its label stands where the circle can be seen: above, below, or at a side."""
    x, y = plane.place(task["latitude"], task["longitude"])
    r = round(task["radiusMeters"] * plane.per_meter, 1)
    ends = ((x, y - r - 6), (x, y + r + 16), (x + r, y - 6), (x - r, y - 6))
    at = next((end for end in ends if 40 <= end[0] <= WIDE - 40 and 16 <= end[1] <= TALL - 30), (x, 16))
    return {"x": x, "y": y, "r": r, "meters": task["radiusMeters"], "label": at}
