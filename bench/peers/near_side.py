"""Other ways to find who is near in PostgreSQL: GiST on points, earthdistance, PostGIS; each a table of its own."""

from __future__ import annotations

import math
import time
from typing import Any, ClassVar, Self

import psycopg

from ulak.dispatch.nearby.geo import chord_of, point_at

METERS_PER_DEGREE = 111_195.0


class NearPeer:
    """Filled with the same helpers as ours, and asked for the same top 20."""

    name: ClassVar[str]
    extensions: ClassVar[str] = ""
    place: ClassVar[str]
    index: ClassVar[str]
    nearest: ClassVar[str]

    def __init__(self, address: str) -> None:
        self._connection = psycopg.connect(address, autocommit=True, prepare_threshold=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def fill(self, helpers: list[tuple[float, float, int]]) -> None:
        """Of (latitude, longitude, completed)."""
        run = self._connection.execute
        run(self.extensions.encode())
        run(f"DROP TABLE IF EXISTS {self.name}".encode())  # of the town before
        run(
            f"""
CREATE TABLE {self.name} (
  id bigint PRIMARY KEY, helper text NOT NULL, place {self.place} NOT NULL, x bigint, y bigint, z bigint,
  completed integer NOT NULL, active boolean NOT NULL DEFAULT true
)""".encode()
        )
        columns = "(id, helper, place, x, y, z, completed)"
        with self._connection.cursor().copy(f"COPY {self.name} {columns} FROM STDIN".encode()) as copy:
            for number, (latitude, longitude, completed) in enumerate(helpers, 1):
                vector = point_at(latitude, longitude).vector
                row = (number, f"h{number:07}", self.to_place(latitude, longitude), *vector, completed)
                copy.write_row(row)
        run(f"CREATE INDEX ON {self.name} USING gist ({self.index})".encode())
        run(b"VACUUM ANALYZE")  # as autovacuum would, ours too

    def search(self, latitude: float, longitude: float, radius: float) -> float:
        """Milliseconds for the top 20."""
        began = time.perf_counter()
        self._connection.execute(self.nearest.encode(), self.parameters(latitude, longitude, radius)).fetchall()
        return (time.perf_counter() - began) * 1000

    def to_place(self, latitude: float, longitude: float) -> str:
        raise NotImplementedError

    def parameters(self, latitude: float, longitude: float, radius: float) -> dict[str, Any]:
        return {"latitude": latitude, "longitude": longitude, "radius": radius}


class Gist(NearPeer):
    """A box around the circle, then the exact distance by the same chord as ours."""

    name, place, index = "gist_helper", "point", "place"
    nearest = """
SELECT id, helper, chord, completed FROM (
  SELECT id, helper, completed, active,
    (x - %(x)s) * (x - %(x)s) + (y - %(y)s) * (y - %(y)s) + (z - %(z)s) * (z - %(z)s) AS chord
  FROM gist_helper WHERE place <@ box(point(%(west)s, %(south)s), point(%(east)s, %(north)s))
) AS near WHERE chord <= %(chord)s AND active ORDER BY completed, chord, helper LIMIT 20"""

    def to_place(self, latitude: float, longitude: float) -> str:
        return f"({longitude},{latitude})"

    def parameters(self, latitude: float, longitude: float, radius: float) -> dict[str, Any]:
        up = radius / METERS_PER_DEGREE
        across = up / math.cos(math.radians(latitude))
        x, y, z = point_at(latitude, longitude).vector
        box = {"south": latitude - up, "north": latitude + up, "west": longitude - across, "east": longitude + across}
        return {**box, "x": x, "y": y, "z": z, "chord": chord_of(radius)}


class Earthdistance(NearPeer):
    name, place, index = "earth_helper", "point", "ll_to_earth(place[1], place[0])"
    extensions = "CREATE EXTENSION IF NOT EXISTS earthdistance CASCADE"
    nearest = """
SELECT id, helper, distance, completed FROM (
  SELECT id, helper, completed, active,
    earth_distance(ll_to_earth(place[1], place[0]), ll_to_earth(%(latitude)s, %(longitude)s)) AS distance
  FROM earth_helper
  WHERE ll_to_earth(place[1], place[0]) <@ earth_box(ll_to_earth(%(latitude)s, %(longitude)s), %(radius)s)
) AS near WHERE distance <= %(radius)s AND active ORDER BY completed, distance, helper LIMIT 20"""

    def to_place(self, latitude: float, longitude: float) -> str:
        return f"({longitude},{latitude})"


class Postgis(NearPeer):
    name, place, index = "postgis_helper", "geography(Point, 4326)", "place"
    extensions = "CREATE EXTENSION IF NOT EXISTS postgis"
    nearest = """
SELECT id, helper, ST_Distance(place, centre) AS distance, completed
FROM postgis_helper, (SELECT ST_SetSRID(ST_MakePoint(%(longitude)s, %(latitude)s), 4326)::geography AS centre) AS here
WHERE ST_DWithin(place, centre, %(radius)s) AND active ORDER BY completed, distance, helper LIMIT 20"""

    def to_place(self, latitude: float, longitude: float) -> str:
        return f"SRID=4326;POINT({longitude} {latitude})"
