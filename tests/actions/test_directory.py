"""The directory: what is refused by name, proving channels, forgetting a person."""

from __future__ import annotations

import contextlib
import sqlite3

import pytest

from tests.actions.conftest import build
from ulak import Invalid, NotFound, Refused
from ulak.actions.directory import entries
from ulak.actions.directory.targets import problem_with
from ulak.actions.prune import prune_runs
from ulak.channels.channel import EndpointGone
from ulak.rooms import LINES
from ulak.stores.migrate import migrate_sqlite
from ulak.testing import advance, drain

PUSH = {"channel_type": "push"}


async def _fields(call) -> set[str]:
    with pytest.raises(Invalid) as caught:
        await call
    return {name for name, _ in caught.value.fields}


async def test_every_wrong_field_is_named(make):
    async with make() as ulak:
        book = ulak.actions.directory
        bad = {"name": "", "device_id": "x" * 22, "status": 3, "time_zone": 1}
        assert await _fields(book.create_profile(bad)) == {"name", "device_id", "status", "time_zone"}
        assert await _fields(book.create_profile({"name": "A", "time_zone": "Mars/Olympus"})) == {"time_zone"}
        assert await _fields(book.create_profile({"name": "A", "quiet_hours": "late"})) == {"quiet_hours"}
        assert await _fields(book.create_profile({"name": "A\n", "device_id": "D\u2028"})) == {"name", "device_id"}
        assert await _fields(book.create_channel({})) == {"profile_id", "channel_type", "target"}
        unknown = {"profile_id": 99, "channel_type": "email", "target": "a@b.org"}
        assert await _fields(book.create_channel(unknown)) == {"profile_id"}
        assert await _fields(book.create_channel({**unknown, "verify_status": "verified"})) == {"verify_status"}
        lost = {"action_plan_id": 99, "step_order": 1, "recipient_profile_id": 99}
        assert await _fields(book.create_route(lost)) == {"action_plan_id", "recipient_profile_id"}


@pytest.mark.parametrize(
    ("channel_type", "target", "fits"),
    [
        ("email", "ada@example.org", True),
        ("email", "a@b@c.org", False),
        ("email", "a@b..org", False),
        ("email", "<a@b.org>", False),
        ("email", "a@b.org;c@d.org", False),
        ("email", "a@b.org\u2028", False),
        ("webhook", "https://example.org/hook?x=1", True),
        ("webhook", "ftp://example.org", False),
        ("webhook", "http://u:p@example.org/", False),
        ("webhook", "http://127.0.0.1%00.8.8.8.8/", False),
        ("webhook", "http://exa mple.org/", False),
        ("sms", "+90 555 111 22 33", True),
        ("sms", "call me", False),
        ("whatsapp", "905551112233", True),
        ("push", "fcm-token:abc", True),
        ("push", "  ", False),
        ("push", "https://updates.push.services.mozilla.com/wpush/v2/x", True),
        ("push", "http://127.1/", False),
        ("slack", "C0123456", True),
        ("slack", "https://hooks.slack.com/services/T1/B1/x", True),
        ("slack", "https://u:p@hooks.slack.com/services/T1/B1/x", False),
    ],
)
def test_a_target_is_one_that_its_channel_could_reach(channel_type, target, fits):
    assert (problem_with(channel_type, target) is None) is fits


async def test_resources_are_made_read_changed_and_deleted(make, world):
    async with make() as ulak:
        book, told = ulak.actions.directory, world(ulak)
        person = await told.person(("push", "token"))
        plan = await told.plan(PUSH)
        route = await told.route(plan, person)
        changed = await book.amend_profile(person, {"priority": 7, "quiet_hours": "22:00-07:00"})
        assert (changed.name, changed.priority, changed.quiet_hours) == ("Ada", 7, "22:00-07:00")
        (channel,) = await book.channels(profile_id=person)
        moved = await book.amend_channel(channel.id, {"target": "token-2"})
        assert (channel.verify_status, moved.verify_status) == ("verified", "pending")
        assert (await book.amend_route(route, {"enabled": False})).enabled is False
        await book.delete_profile(person)
        for read in (book.profile(person), book.channel(channel.id), book.route(route)):
            with pytest.raises(NotFound):
                await read


async def test_ids_are_small_numbers_and_never_come_back(make, world):
    async with make() as ulak:
        told = world(ulak)
        first = await told.person()
        await ulak.actions.directory.delete_profile(first)
        second = await told.person()
        fresh, (_, plan) = await ulak.actions.plans.put(
            21, {"name": "x", "steps": [{"step_order": 1, **PUSH, "body": "b"}]}
        )
        following = await told.plan(PUSH)
    assert (first, second, fresh, plan.id, plan.version, following) == (1, 2, True, 21, 1, 22)


async def test_a_code_that_comes_back_proves_a_channel(make, world, channel):
    async with make() as ulak:
        book, told = ulak.actions.directory, world(ulak)
        await told.person(("webhook", "https://example.org/hook"), verified=False)
        await book.verify(1)
        await drain(ulak)
        (message,) = channel.messages
        code = message.metadata["code"]
        assert code in message.body
        with pytest.raises(Invalid):
            await book.confirm(1, "000000" if code != "000000" else "111111")
        proven = await book.confirm(1, code)
        with pytest.raises(Invalid):
            await book.confirm(1, code)
    assert proven.verify_status == "verified"


async def test_a_code_stands_in_no_job_that_somebody_could_look_at(make, world, channel):
    async with make() as ulak:
        await world(ulak).person(("push", "token-1"), verified=False)
        await ulak.actions.directory.verify(1)
        await drain(ulak)
        code = channel.messages[0].metadata["code"]
        (seen,) = [await ulak.jobs.get(one.id) for one in await ulak.jobs.list(kind="actions.verify")]
    assert (len(code), code.isdigit()) == (6, True)
    assert code not in str(seen.payload)


async def test_five_wrong_codes_fail_the_channel(make, world, channel):
    async with make() as ulak:
        book, told = ulak.actions.directory, world(ulak)
        await told.person(("sms", "+905551112233"), verified=False)
        await book.verify(1)
        await drain(ulak)
        code = channel.messages[0].metadata["code"]
        for left in ("4 more tries", "3 more tries", "2 more tries", "1 more try", "the channel has failed"):
            assert (await book.channel(1)).verify_status == "pending"
            with pytest.raises(Invalid, match=left):
                await book.confirm(1, "x" + code)
        assert (await book.channel(1)).verify_status == "failed"
        with pytest.raises(Invalid):
            await book.confirm(1, code)


async def test_an_address_is_sent_five_codes_in_an_hour_whichever_channels_have_it(make, world, channel):
    async with make() as ulak:
        book, told = ulak.actions.directory, world(ulak)
        await told.person(("email", "Ada@example.org"), ("sms", "+905551112233"), verified=False)
        await told.person(("email", "ada@example.org"), verified=False)
        for identifier in (1, 3, 1, 3, 1):
            await book.verify(identifier)
        await drain(ulak)  # time that passes while they run would end their attempts
        await advance(ulak, 600)
        await book.delete_channel(1)
        with pytest.raises(Refused, match="has had its codes") as refused:
            await book.verify(3)
        assert refused.value.retry_after_seconds == pytest.approx(3000, abs=1)
        await book.verify(2)  # another address
        await drain(ulak)
        await advance(ulak, 3001)
        await book.verify(3)
        await drain(ulak)
    assert len(channel.messages) == 7


async def test_a_webhook_may_be_verified_more_often_than_a_person(make, world, channel):
    async with make() as ulak:
        await world(ulak).person(("webhook", "https://example.org/hook"), verified=False)
        for _ in range(8):
            await ulak.actions.directory.verify(1)
        await drain(ulak)
    assert len(channel.messages) == 8


async def test_an_old_code_is_refused(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        await told.person(("push", "token"), verified=False)
        await ulak.actions.directory.verify(1)
        await drain(ulak)
        await advance(ulak, 16 * 60)
        with pytest.raises(Invalid, match="too old"):
            await ulak.actions.directory.confirm(1, channel.messages[0].metadata["code"])


async def test_a_person_who_is_forgotten_leaves_a_whole_ledger(make, world, channel):
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ name }}"})
        run = await told.run(plan, variables={"name": "Ada Lovelace"})
        await ulak.actions.directory.forget(1)
        after = await told.look(run["run_id"])
        again = await told.run(plan, variables={"name": "x"})
        watched = await ulak.actions.watchdog()
        rows = await ulak.store.read(_everything)
    assert after == run
    assert again["steps"][0]["error_code"] == "NO_RECIPIENT"
    assert watched["difference"] == 0
    assert "Lovelace" not in rows
    assert "token-1" not in rows


async def test_a_person_who_is_forgotten_is_gone_from_runs_that_went_on_to_somebody_else(make, world, channel):
    channel.by_recipient["token-1"] = EndpointGone("gone", code="FCM_UNREGISTERED")
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ name }}"})
        await told.route(plan, await told.person(("push", "token-2")))
        run = await told.run(plan, variables={"name": "Ada Lovelace"})
        await ulak.actions.directory.forget(1)
        rows = await ulak.store.read(_everything)
    assert (run["state"], channel.recipients) == ("done", ["token-1", "token-2"])
    assert "Lovelace" not in rows


async def test_the_memory_of_a_profile_that_a_step_left_ends_with_its_run(make, world, channel):
    channel.by_recipient["token-1"] = EndpointGone("gone", code="FCM_UNREGISTERED")
    async with make() as ulak:
        told = world(ulak)
        plan = await told.ready(PUSH)
        await told.route(plan, await told.person(("push", "token-2")))
        await told.run(plan)
        found = [await ulak.store.read(_runs_of, profile) for profile in (1, 2)]
        await advance(ulak, 1)
        removed = await ulak.write(prune_runs, 0)
        left = [await ulak.store.read(_runs_of, profile) for profile in (1, 2)]
    assert ([len(runs) for runs in found], removed, left) == ([1, 1], 1, [[], []])


def _runs_of(tx, profile: int) -> list[int]:
    return [run for (run,) in tx.rows(entries.sql.find_runs_of_profile, profile=profile)]


def test_the_runs_of_a_profile_are_found_by_indexes(tmp_path):
    with contextlib.closing(sqlite3.connect(tmp_path / "ulak.db", isolation_level=None)) as connection:
        migrate_sqlite(connection, LINES, 0)
        asked = f"EXPLAIN QUERY PLAN {entries.sql.find_runs_of_profile.sqlite}"
        plan = [row[3] for row in connection.execute(asked, {"profile": 1})]
    assert [step for step in plan if "SCAN" in step or "SEARCH" in step] == [
        "SEARCH actions_step USING COVERING INDEX actions_step_profile (profile_id=?)",
        "SEARCH actions_former USING PRIMARY KEY (profile_id=?)",
    ]


async def test_a_person_who_is_forgotten_is_in_no_byte_of_the_file(tmp_path, clock, channel, world):
    file = tmp_path / "ulak.db"
    async with build(f"sqlite:///{file}", clock, channel) as ulak:
        told = world(ulak)
        plan = await told.ready({**PUSH, "body": "{{ name }}"}, channels=[("push", "planted-token")], name="Planted")
        for _ in range(20):
            await told.run(plan, variables={"name": "planted-variable"})
    assert b"planted-token" in file.read_bytes()  # and not only in the log that is written ahead
    async with build(f"sqlite:///{file}", clock, channel) as ulak:
        await ulak.actions.directory.forget(1)
    left = b"".join(one.read_bytes() for one in tmp_path.iterdir())
    assert [word for word in (b"planted-token", b"Planted", b"planted-variable") if word in left] == []


def _everything(tx) -> str:
    from ulak.spine.query import Queries

    sql = Queries("ulak.actions")
    return repr([tx.rows(sql.list_runs, before=1 << 62, n=100), tx.rows(sql.list_profiles, after=0, n=100)])


async def test_a_profile_that_no_plan_reaches_any_more_is_named_though_it_has_another_channel(make, world, channel):
    channel.by_recipient["token-1"] = EndpointGone("gone", code="FCM_UNREGISTERED")
    async with make() as ulak:
        told = world(ulak)
        both = (("push", "token-1"), ("email", "ada@example.org"))
        plan = await told.ready(PUSH, channels=both)
        await told.run(plan)
        pushed = await ulak.actions.directory.unreachable()
        await told.route(plan, 1, channel_type="email")
        by_mail = await ulak.actions.directory.unreachable()
        own = await told.person(("push", "token-1"), device_id="D7")
        await told.run(await told.plan(PUSH), device_id="D7")
        by_device = await ulak.actions.directory.unreachable()
    assert (pushed, by_mail, by_device) == ([(1, "Ada")], [], [(own, "Ada")])


async def test_a_code_to_an_address_that_is_gone_fails_the_channel(make, world, channel):
    channel.by_recipient["token-1"] = EndpointGone("gone", code="FCM_UNREGISTERED")
    async with make() as ulak:
        await world(ulak).person(("push", "token-1"), verified=False)
        await ulak.actions.directory.verify(1)
        await drain(ulak)
        (found,) = await ulak.actions.directory.channels()
    assert (found.verify_status, len(channel.messages)) == ("failed", 1)


async def test_a_forgotten_person_is_gone_from_a_letter_that_was_mended(make, world):
    async with make() as ulak:
        told = world(ulak)
        await told.run(await told.ready({**PUSH, "body": "{{ missing }}"}))
        (letter,) = await ulak.actions.dead_letters()
        await ulak.actions.mend(int(letter.id), {"variables": {"other": "Lovelace"}, "body": "for Lovelace {{ x }}"})
        await ulak.actions.directory.forget(1)
        kept = await ulak.jobs.get(int(letter.id))
        letters = await ulak.actions.dead_letters()
    assert "Lovelace" not in str(kept.payload)
    assert [one.id for one in letters] == [letter.id]


async def test_headers_that_no_webhook_may_have_are_refused_with_the_channel(make, world):
    async with make() as ulak:
        await world(ulak).person()
        asked = {"profile_id": 1, "channel_type": "webhook", "target": "https://example.org/hook"}
        bad = {**asked, "target_meta": {"headers": {"webhook-id": "mine"}}}
        assert await _fields(ulak.actions.directory.create_channel(bad)) == {"target_meta"}
        await ulak.actions.directory.create_channel({**asked, "target_meta": {"headers": {"X-Key": "k"}}})
