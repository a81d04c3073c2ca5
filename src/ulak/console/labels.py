"""Names beside the points of a map: each where it covers neither a point nor another name, or left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

HALF, GAP, CHARACTER, LINE = 10, 17, 7, 12  # half a point's side, from its middle to a name; of the letters, in pixels

Box = tuple[float, float, float, float]  # left, top, right, bottom


def place_labels(named: Sequence[Mapping[str, Any]], points: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A name that fits nowhere is left out: its point has it as a title, and the list beside the map has all."""
    taken = [(one["x"] - HALF, one["y"] - HALF, one["x"] + HALF, one["y"] + HALF) for one in points]
    placed = []
    for one in named:
        found = next(
            (
                (label, box)
                for label, box in _sides(one["x"], one["y"], one["short"])
                if not any(_overlap(box, other) for other in taken)
            ),
            None,
        )
        if found is not None:
            taken.append(found[1])
            placed.append(found[0])
    return placed


def _sides(x: float, y: float, text: str) -> list[tuple[dict[str, Any], Box]]:
    """To the right, to the left, above and below."""
    wide = len(text) * CHARACTER
    middle = (y - LINE / 2, y + LINE / 2)
    return [
        ({"x": x + GAP, "y": y + 4, "anchor": "start", "text": text}, (x + GAP, middle[0], x + GAP + wide, middle[1])),
        ({"x": x - GAP, "y": y + 4, "anchor": "end", "text": text}, (x - GAP - wide, middle[0], x - GAP, middle[1])),
        *(
            ({"x": x, "y": y + far + 4, "anchor": "middle", "text": text},
             (x - wide / 2, y + far - LINE / 2, x + wide / 2, y + far + LINE / 2))
            for far in (-GAP - 4, GAP + 4)
        ),
    ]  # fmt: skip


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
