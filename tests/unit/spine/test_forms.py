"""What a caller may say: forms of new jobs, handlers, cron entries; and how statements are found."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ulak import Backoff, BreakerPolicy, Conflict, Invalid, NewJob, Priority
from ulak.clock import to_datetime, to_millis
from ulak.ids import Ids
from ulak.spine.handler import Handler, Handlers
from ulak.spine.query import Queries
from ulak.spine.units.cron import CronEntry
from ulak.spine.validate import MAX_JOBS, MAX_PAYLOAD_BYTES, to_row, to_rows

NOW = 1_800_000_000_000
LATEST = to_datetime(NOW) + timedelta(days=3650)


def row(**options):
    return to_row(NewJob(**{"kind": "mail.send", **options}), Ids().take(NOW), NOW)


def test_a_plain_job_is_due_now():
    made = row(payload={"to": "ada"})
    assert (made.due_at, made.accepted_at, made.prio, made.payload) == (NOW, NOW, Priority.NORMAL, b'{"to":"ada"}')


@pytest.mark.parametrize(
    "payload", [None, [None, 1.5], {"when": datetime(2027, 1, 1, tzinfo=UTC), "who": None}, {"who": None, "in": {1, 2}}]
)
def test_null_is_as_good_a_payload_as_any(payload):
    assert b"null" in row(payload=payload).payload


def test_a_payload_of_a_hundred_levels_is_taken():
    assert row(payload=reduce(lambda inner, _: [inner], range(100), "[" * 200)).payload.startswith(b"[" * 100)


@pytest.mark.parametrize("jobs", [None, NewJob("mail.send"), "mail.send", [{"kind": "mail.send"}]], ids=repr)
def test_what_is_no_list_of_jobs_is_refused_by_name(jobs):
    with pytest.raises(Invalid, match=r"NewJob\(kind, payload\)"):
        to_rows(jobs, Ids(), NOW)


def test_a_delay_and_an_instant_say_when():
    assert row(delay_seconds=1.5).due_at == NOW + 1500
    assert row(due_at=LATEST).due_at == row(delay_seconds=3650 * 86_400).due_at
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
        ({"due_at": LATEST + timedelta(milliseconds=1)}, "due_at"),
        ({"due_at": datetime.max.replace(tzinfo=UTC)}, "due_at"),
        ({"expires_at": datetime(2027, 1, 1)}, "expires_at"),
        ({"payload": object()}, "payload"),
        ({"payload": "\ud800"}, "payload"),
        ({"payload": "x" * MAX_PAYLOAD_BYTES}, "payload"),
        ({"payload": {"price": float("nan")}}, "payload"),  # JSON has none, and null is something else
        ({"payload": [[1, float("-inf")]]}, "payload"),
        ({"payload": reduce(lambda inner, _: [inner], range(101), 1)}, "payload"),
        ({"payload": reduce(lambda inner, _: {"in": inner}, range(5000), 1)}, "payload"),
        ({"kind": None}, "kind"),
        ({"kind": ["mail.send"]}, "kind"),
        ({"kind": b"mail.send"}, "kind"),
        ({"key": 5}, "key"),
        ({"unique_key": ["today"]}, "unique_key"),
        ({"continuation": print}, "continuation"),
        ({"slots": 1.5}, "slots"),
        ({"slots": "3"}, "slots"),
        ({"priority": "HIGH"}, "priority"),
        ({"priority": []}, "priority"),
        ({"delay_seconds": "1"}, "delay_seconds"),
        ({"delay_seconds": timedelta(seconds=1)}, "delay_seconds"),
        ({"due_at": "2027-01-01T00:00:00Z"}, "due_at"),
        ({"due_at": date(2027, 1, 1)}, "due_at"),
        ({"expires_at": 1_800_000_000}, "expires_at"),
        ({"on_uncertain": "Hold"}, "on_uncertain"),  # taken for "resend", it would be paid twice
        ({"on_uncertain": None}, "on_uncertain"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_could_not_be_kept_is_refused_and_the_field_is_named(options, field):
    with pytest.raises(Invalid) as refusal:
        row(**options)
    assert refusal.value.fields[0][0] == field


def test_a_batch_has_its_bound_and_its_ids_are_in_order():
    with pytest.raises(Invalid, match="too many"):
        to_rows([NewJob("mail.send")] * (MAX_JOBS + 1), Ids(), NOW)
    ids = [one.id for one in to_rows([NewJob("mail.send")] * MAX_JOBS, Ids(), NOW)]
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


@pytest.mark.parametrize(
    "options",
    [
        {"concurrency": math.nan},
        {"concurrency": "5"},
        {"max_attempts": 1.5},
        {"timeout_seconds": None},
        {"timeout_seconds": math.nan},
        {"rate_per_second": math.nan},
        {"capacity": 0},  # nothing would ever fit
        {"capacity": -1},
        {"capacity": "10"},
        {"admission": "drop"},
        {"wait_seconds": -1},
        {"wait_seconds": math.nan},
        {"lane": "proces"},
        {"backoff": 5},
        {"breaker": True},
    ],
    ids=repr,
)
def test_a_handler_with_nonsense_is_refused_when_it_is_declared(options):
    with pytest.raises(Invalid, match=f"{next(iter(options))} of mail.send must be"):
        Handler("mail.send", handle, **options)


@pytest.mark.parametrize("kind", [None, 5, "", "x" * 101, "a\x00b", "\ud800"])
def test_a_handler_for_what_is_no_kind_is_refused(kind):
    with pytest.raises(Invalid, match="must be text of 1 to 100 characters"):
        Handler(kind, handle)


@pytest.mark.parametrize(
    "options", [{"first_seconds": -1}, {"factor": "2"}, {"cap_seconds": math.nan}, {"jitter": -0.1}], ids=repr
)
def test_a_backoff_that_is_no_time_is_refused(options):
    with pytest.raises(Invalid, match=f"{next(iter(options))} of a Backoff"):
        Backoff(**options)


@pytest.mark.parametrize(
    "options", [{"failures": 0}, {"failures": 1.5}, {"open_seconds": -1}, {"cap_seconds": math.nan}], ids=repr
)
def test_a_breaker_that_could_not_work_is_refused(options):
    with pytest.raises(Invalid, match=f"{next(iter(options))} of a BreakerPolicy"):
        BreakerPolicy(**options)


def test_a_kind_has_its_own_bound_or_the_usual_one():
    handlers = Handlers()
    handlers.add(Handler("mail.send", handle, capacity=10))
    assert handlers.capacity_of("mail.send", 1000) == 10
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


@pytest.mark.parametrize(
    "options",
    [
        {"name": ""},
        {"name": 5},
        {"kind": ""},
        {"kind": "x" * 101},
        {"payload": object()},
        {"payload": "x" * MAX_PAYLOAD_BYTES},
        {"expression": None},
        {"time_zone": None},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_entry_that_could_not_fire_is_refused_when_it_is_declared(options):
    with pytest.raises(Invalid):
        CronEntry(**{"name": "nightly", "expression": "30 2 * * *", "kind": "report.make", **options}).check(NOW)


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


def test_kinds_that_may_run_more_than_the_worker_does_at_once_are_told():
    handlers = Handlers()
    for kind in ("mail.send", "sms.send"):
        handlers.add(Handler(kind, handle, concurrency=100))
    assert handlers.crowding(200) is None
    assert "200 jobs at once, and worker.concurrency allows 199" in str(handlers.crowding(199))
