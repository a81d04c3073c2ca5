"""A crash at every named point, early and late in a life; then the store is whole and everything has run."""

from __future__ import annotations

import pytest

from tests.crash.wire import Life
from ulak.spine import probe

pytestmark = pytest.mark.slow

# These come about once a second, or once a life; the others at every commit or job.
SELDOM = {"rescuer.before_rescue", "rescuer.rescued", "cron.before_fire", "stop.before_release"}
# A room's points are reached by its own work, and its own tests kill there.
ROOMS = ("dispatch", "compute", "changes", "actions", "bus", "buses")
SPINE = [point for point in probe.POINTS if point.partition(".")[0] not in ROOMS]
ON_POSTGRES = ("writer.before_commit", "writer.after_commit", "worker.after_handler", "worker.settled")


def reaches(point: str) -> tuple[int, ...]:
    return (1,) if point in SELDOM else (1, 6, 30)


def crash_at(killer, point: str) -> None:
    """Lives that each end at the point; the parent's own count says that they did."""
    for number, reach in enumerate(reaches(point), 1):
        stops = point == "stop.before_release"
        life = Life(
            killer.address, 100 + number, producers=3, point=point, reach=reach,
            until="stopped" if stops else "killed", accept_before_stop=30,
        )  # fmt: skip
        child = killer.nursery.start(life)
        killer.nursery.finish(child)
        assert child.was_killed, f"life {number} was to end at {point}, but ended with status {child.status}"


@pytest.mark.parametrize("address", ["sqlite"], indirect=True)
@pytest.mark.parametrize("point", SPINE)
def test_a_crash_at_a_probe_loses_nothing(killer, point):
    crash_at(killer, point)
    assert killer.drain().violations == {}


@pytest.mark.postgres
@pytest.mark.parametrize("address", ["postgres"], indirect=True)
@pytest.mark.parametrize("point", ON_POSTGRES)
def test_a_crash_at_a_probe_loses_nothing_on_postgres(killer, point):
    crash_at(killer, point)
    assert killer.drain().violations == {}
