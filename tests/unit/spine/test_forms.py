"""What a caller may say: forms of new jobs, handlers, cron entries; and how statements are found."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import Conflict, Invalid, NewJob, Priority
from ulak.clock import to_millis
from ulak.ids import Ids
from ulak.spine.cron import CronEntry
from ulak.spine.form import MOST_JOBS, MOST_PAYLOAD_BYTES, to_row, to_rows
from ulak.spine.handler import Handler, Handlers
from ulak.spine.query import Queries

NOW = 1_800_000_000_000


def row(**options):
    return to_row(NewJob(**{"kind": "mail.send", **options}), Ids(), NOW)


def test_a_plain_job_is_due_now():
    made = row(payload={"to": "ada"})
    assert (made.due_at, made.accepted_at, made.prio, made.payload) == (NOW, NOW, Priority.NORMAL, b'{"to":"ada"}')


def test_a_delay_and_an_instant_say_when():
    assert row(delay_seconds=1.5).due_at == NOW + 1500
    assert row(due_at=datetime(2027, 1, 15, 8, tzinfo=UTC)).due_at == to_millis(datetime(2027, 1, 15, 8, tzinfo=UTC))


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"kind": ""}, "kind"),
        ({"kind": "x" * 101}, "kind"),
        ({"continuation": "x" * 101}, "continuation"),
        ({"key": ""}, "key"),
        ({"key": "a\x00b"}, "key"),
        ({"key": "\ud800"}, "key"),
        ({"unique_key": "x" * 201}, "unique_key"),
        ({"continuation": ""}, "continuation"),
        ({"slots": 0}, "slots"),
        ({"slots": 1001}, "slots"),
        ({"priority": 7}, "priority"),
        ({"priority": -1}, "priority"),
        ({"delay_seconds": -1}, "delay_seconds"),
        ({"delay_seconds": float("nan")}, "delay_seconds"),
        ({"delay_seconds": float("inf")}, "delay_seconds"),
        ({"delay_seconds": 1, "due_at": datetime(2027, 1, 1, tzinfo=UTC)}, "delay_seconds"),
        ({"due_at": datetime(2027, 1, 1)}, "due_at"),
        ({"expires_at": datetime(2027, 1, 1)}, "expires_at"),
        ({"payload": object()}, "payload"),
        ({"payload": "\ud800"}, "payload"),
        ({"payload": "x" * MOST_PAYLOAD_BYTES}, "payload"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_could_not_be_kept_is_refused_and_the_field_is_named(options, field):
    with pytest.raises(Invalid) as refusal:
        row(**options)
    assert refusal.value.fields[0][0] == field


def test_a_batch_has_its_bound_and_its_ids_are_in_order():
    with pytest.raises(Invalid, match="too many"):
        to_rows([NewJob("mail.send")] * (MOST_JOBS + 1), Ids(), NOW)
    ids = [one.id for one in to_rows([NewJob("mail.send")] * MOST_JOBS, Ids(), NOW)]
    assert ids == sorted(set(ids))


@given(st.text(min_size=1, max_size=200))
def test_a_key_is_taken_as_it_is_or_refused(text):
    try:
        assert row(key=text).key == text
    except Invalid:
        assert "\x00" in text or not text.isprintable()


# Handlers


async def handle(_):
    """A handler."""


def test_a_kind_has_one_handler():
    handlers = Handlers()
    handlers.add(Handler("mail.send", handle))
    with pytest.raises(Conflict):
        handlers.add(Handler("mail.send", handle))


@pytest.mark.parametrize(
    "options", [{"concurrency": 0}, {"max_attempts": 0}, {"timeout_seconds": 0}, {"rate_per_second": 0}], ids=repr
)
def test_a_limit_of_nothing_is_refused(options):
    with pytest.raises(Invalid):
        Handler("mail.send", handle, **options)


def test_kinds_of_one_pool_share_the_smallest_bound():
    handlers = Handlers()
    handlers.add(Handler("mail.send", handle, pool="out", capacity=10))
    handlers.add(Handler("sms.send", handle, pool="out", capacity=5))
    assert handlers.pool_of("mail.send") == handlers.pool_of("sms.send") == "out"
    assert handlers.capacity_of("out", 1000) == 5
    assert handlers.capacity_of("other", 1000) == 1000


# Cron


def millis(*parts):
    return to_millis(datetime(*parts, tzinfo=UTC))


def test_the_next_time_of_an_entry_is_after_now_and_in_its_zone():
    entry = CronEntry("nightly", "30 2 * * *", "report.make", time_zone="Europe/Istanbul")
    assert entry.next_after(millis(2027, 1, 1, 0, 0)) == millis(2027, 1, 1, 23, 30)
    assert entry.next_after(millis(2027, 1, 1, 23, 30)) == millis(2027, 1, 2, 23, 30)


def test_an_hour_that_the_clocks_skip_still_has_one_firing():
    entry = CronEntry("nightly", "30 2 * * *", "report.make", time_zone="Europe/Berlin")
    before = millis(2027, 3, 27, 12, 0)
    times = []
    for _ in range(3):
        before = entry.next_after(before)
        times.append(before)
    days = {to_millis(datetime(2027, 3, day, tzinfo=UTC)) // 86_400_000 for day in (28, 29, 30)}
    assert {at // 86_400_000 for at in times} == days


# Statements


def test_every_statement_of_the_spine_loads_and_no_cast_is_taken_for_a_parameter():
    from importlib import resources

    sql = Queries("ulak.spine")
    names = {file.name.partition(".")[0] for file in (resources.files("ulak.spine") / "queries").iterdir()}
    for name in names - {"__pycache__"}:
        query = getattr(sql, name)
        assert query.sqlite or query.postgres
        assert not {"bigint", "text", "bytea", "int"} & set(query.postgres_parameters), name
        assert "--" not in query.sqlite + query.postgres


def test_an_unknown_statement_is_named():
    with pytest.raises(LookupError, match="no query 'nonsense'"):
        Queries("ulak.spine").nonsense  # noqa: B018 - asking for it is the test
