"""Gauges of feeds and registries, the seed's own counter, and staleness as a reason at /readyz."""

from __future__ import annotations

from tests.changes.conftest import opened, served_over


async def metrics(door) -> dict[str, float]:
    await door.desk.ulak.store.read(door.desk.ulak.rooms["changes"].gauges.__self__.take)
    text = (await door.get("/metrics")).text
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in lines if "changes" in name or name.startswith("gibuserlist")}


async def test_the_room_is_in_the_metrics(door):
    await door.desk.publish(range(1, 21))
    await door.desk.publish(range(11, 21))
    found = await metrics(door)
    assert found['ulak_changes_head{feed="einvoice"}'] == 20
    assert found['ulak_changes_count{feed="einvoice"}'] == 20
    assert found['ulak_changes_records{file="PK",registry="gib"}'] == 10
    assert found['ulak_changes_guard_percent{feed="einvoice",guard="removed"}'] == 50
    assert found['ulak_changes_syncs_total{registry="gib",verdict="withheld"}'] == 1
    assert found["gibuserlist_sync_removal_skipped_total"] == 2
    assert found['ulak_changes_published_age_seconds{registry="gib"}'] == 0
    door.desk.clock.advance(30)
    found = await metrics(door)
    assert found['ulak_changes_seen_age_seconds{registry="gib"}'] == 30
    assert found['ulak_changes_bytes{file="GB",registry="gib"}'] > 0
    assert found['ulak_changes_parse_failures{file="PK",registry="gib"}'] == 0
    assert found['ulak_changes_mixed_records{registry="gib"}'] == 0
    assert found['ulak_changes_fan_out_lag{feed="einvoice"}'] == 0
    steps = {name for name in found if name.startswith("ulak_changes_step_seconds")}
    told = {"fetch", "read", "export", "compare", "write", "keep"}
    assert steps == {f'ulak_changes_step_seconds{{registry="gib",step="{step}"}}' for step in told}


async def test_a_publication_is_in_the_metrics_at_once(door):
    await door.desk.publish(range(1, 21))
    await door.desk.publish(range(1, 31))
    text = (await door.get("/metrics")).text
    assert 'ulak_changes_count{feed="einvoice"} 30.0' in text


async def test_a_stale_list_with_a_cron_is_a_reason_and_still_ready(address, tmp_path, clock):
    async with opened(address, tmp_path, clock, changes__gib__cron="0 3 1 1 *") as desk, served_over(desk) as door:
        await desk.publish(range(1, 5))
        assert "gib" not in (await door.get("/readyz")).text
        clock.advance(30 * 3600)
        await metrics(door)
        answer = await door.get("/readyz")
        assert answer.status == 200
        assert "the list of gib is 30 h old" in answer.text


async def test_a_list_with_a_cron_that_was_never_published_is_a_reason_too(address, tmp_path, clock):
    async with opened(address, tmp_path, clock, changes__gib__cron="0 3 1 1 *") as desk, served_over(desk) as door:
        await metrics(door)
        assert "gib" not in (await door.get("/readyz")).text
        assert (await desk.sync()).verdict == "refused"  # there are no files
        await metrics(door)
        answer = await door.get("/readyz")
        assert answer.status == 200
        assert "no list of gib was published yet" in answer.text
