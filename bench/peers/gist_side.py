"""The usual way to find who is near: PostgreSQL's own GiST index on points, a box around the circle, exact distance."""

from __future__ import annotations

import math
import time
from typing import Any, Self

import psycopg

from ulak.dispatch.nearby.geo import chord_of, point_at

TABLE = """
CREATE TABLE peer_helper (
  id bigint PRIMARY KEY, helper text NOT NULL, place point NOT NULL, x bigint NOT NULL, y bigint NOT NULL,
  z bigint NOT NULL, completed integer NOT NULL, active boolean NOT NULL DEFAULT true
)"""
NEAREST = """
SELECT id, helper, chord, completed FROM (
  SELECT id, helper, completed, active,
    (x - %(x)s) * (x - %(x)s) + (y - %(y)s) * (y - %(y)s) + (z - %(z)s) * (z - %(z)s) AS chord
  FROM peer_helper WHERE place <@ box(point(%(west)s, %(south)s), point(%(east)s, %(north)s))
) AS near WHERE chord <= %(chord)s AND active ORDER BY completed, chord, helper LIMIT 20"""
METERS_PER_DEGREE = 111_195.0


class GistPeer:
    """A table of its own in the same database, filled with the same helpers."""

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True, prepare_threshold=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def fill(self, helpers: list[tuple[float, float, int]]) -> None:
        """Of (latitude, longitude, completed)."""
        self._connection.execute(TABLE)
        columns = "(id, helper, place, x, y, z, completed)"
        with self._connection.cursor().copy(f"COPY peer_helper {columns} FROM STDIN") as copy:
            for number, (latitude, longitude, completed) in enumerate(helpers, 1):
                vector = point_at(latitude, longitude).vector
                copy.write_row((number, f"h{number:07}", f"({longitude},{latitude})", *vector, completed))
        self._connection.execute("CREATE INDEX ON peer_helper USING gist (place)")
        self._connection.execute("VACUUM ANALYZE peer_helper, dispatch_helper")  # as autovacuum would, both

    def search(self, latitude: float, longitude: float, radius: float) -> float:
        """Milliseconds for the top 20."""
        began = time.perf_counter()
        up = radius / METERS_PER_DEGREE
        across = up / math.cos(math.radians(latitude))
        x, y, z = point_at(latitude, longitude).vector
        box: dict[str, Any] = {"south": latitude - up, "north": latitude + up}
        box |= {"west": longitude - across, "east": longitude + across}
        self._connection.execute(NEAREST, {**box, "x": x, "y": y, "z": z, "chord": chord_of(radius)}).fetchall()
        return (time.perf_counter() - began) * 1000
