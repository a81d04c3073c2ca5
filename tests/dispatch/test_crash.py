"""A crash at every named point: no offer without its timer, no helper left busy, no message lost."""

from __future__ import annotations

import pytest

from tests.dispatch.crash import kill_one, recover
from ulak.spine import probe

pytestmark = pytest.mark.slow

# Once a second or once a life; tests/crash has them.
SELDOM = {"rescuer.before_rescue", "rescuer.rescued", "cron.before_fire", "stop.before_release"}


@pytest.mark.parametrize(
    "point", [point for point in probe.POINTS if point not in SELDOM and not point.startswith("changes.")]
)
async def test_a_crash_at_a_probe_leaves_nothing_broken(tmp_path, point):
    address = f"sqlite:///{tmp_path}/ulak.db"
    reaches = (60, 95) if point.startswith("writer.") else (3, 8)  # the writer is reached by every verb
    for seed, reach in enumerate(reaches):
        assert kill_one(address, seed, point, reach)
    assert await recover(address) == []
