"""Commands on a store that nobody serves: they open it themselves."""

from __future__ import annotations

import asyncio

import pytest

from ulak import Permanent, Ulak
from ulak.errors import Error, Invalid, Misconfigured, Unavailable
from ulak.spine.breaker import Breaker, save_breakers
from ulak.testing import drain

STORE = "sqlite:///ulak.db"


async def filled(dead=2, waiting=1):
    """A store with dead letters and waiting jobs; answers their ids."""
    made = Ulak(STORE)

    @made.handles("doomed")
    async def doomed(job):
        raise Permanent("no such mailbox: ayse@example.com")

    async with made:
        buried = [str(await made.enqueue("doomed", {"to": "ayse@example.com"})) for _ in range(dead)]
        await drain(made)
        return buried, [str(await made.enqueue("unhandled")) for _ in range(waiting)]


@pytest.fixture
def store():
    return asyncio.run(filled())


def test_jobs_are_listed_newest_first(store, ulak):
    buried, waiting = store
    listed = ulak("jobs", "list", "--json")
    assert [job["id"] for job in listed["jobs"]] == [*waiting, *reversed(buried)]
    assert ulak("jobs", "list", "--status", "ready", "--json")["jobs"][0]["id"] == waiting[0]


def test_a_listing_for_people_has_one_line_per_job(store, ulak):
    lines = ulak("jobs", "list").splitlines()
    assert lines[0].split()[:3] == ["id", "kind", "status"]
    assert len(lines) == 4


def test_a_job_is_shown_with_its_timeline(store, ulak):
    buried, _ = store
    text = ulak("jobs", "show", buried[0])
    assert "status: dead" in text
    assert "started (1)" in text
    assert "ayse" not in text
    assert "ayse" in ulak("jobs", "show", buried[0], "--reveal")


def test_a_waiting_job_is_cancelled(store, ulak):
    _, waiting = store
    assert ulak("jobs", "cancel", waiting[0], "--json") == [{"id": waiting[0], "status": "cancelled"}]
    with pytest.raises(Error, match="already"):
        ulak("jobs", "cancel", waiting[0])


def test_dead_letters_are_masked_unless_asked_for(store, ulak):
    assert "ayse" not in ulak("dead", "list")
    assert "ayse" not in ulak("dead", "list", "--json").__str__()
    assert ulak("dead", "list", "--reveal", "--json")["dead"][0]["payload"] == {"to": "ayse@example.com"}


@pytest.mark.parametrize("form", ["argument", "file", "input"])
def test_a_dead_letter_is_mended(store, folder, form, ulak):
    buried, _ = store
    (folder / "new.json").write_text('{"to": "x"}')
    given = {"argument": '{"to": "x"}', "file": "@new.json", "input": "-"}[form]
    ulak("dead", "edit", buried[0], given, stdin='{"to": "x"}')
    assert ulak("dead", "list", "--reveal", "--json")["dead"][0]["payload"] == {"to": "x"}


def test_a_payload_that_is_no_json_is_refused(store, ulak):
    with pytest.raises(Error, match="not JSON"):
        ulak("dead", "edit", store[0][0], "{")


def test_dead_letters_go_back_by_id(store, ulak):
    buried, _ = store
    assert ulak("jobs", "redrive", buried[0], "--json")["ids"] == [buried[0]]
    with pytest.raises(Error, match="not among the dead letters"):
        ulak("jobs", "redrive", buried[0])


def test_dead_letters_go_back_by_filter_dry_first_and_at_a_rate(store, ulak):
    assert "2 would go" in ulak("dead", "redrive", "--kind", "doomed", "--dry-run")
    with pytest.raises(Error, match="or give --all"):
        ulak("dead", "redrive")
    with pytest.raises(Error, match="or give --all"):
        ulak("dead", "redrive", "--rate", "5")
    assert "2 went back" in ulak("dead", "redrive", "--all", "--rate", "1000")
    assert ulak("dead", "list", "--json")["dead"] == []


def test_a_dead_letter_is_dropped(store, ulak):
    buried, _ = store
    ulak("dead", "drop", *buried)
    assert ulak("dead", "list", "--json")["dead"] == []


def test_of_several_ids_a_wrong_one_does_not_keep_the_others_back_and_is_named(store, ulak):
    buried, waiting = store
    with pytest.raises(Invalid, match="done for 2 of 3, but not for 7: "):
        ulak("dead", "drop", buried[0], "7", buried[1])
    assert ulak("dead", "list", "--json")["dead"] == []
    with pytest.raises(Invalid, match="done for 1 of 2, but not for 7: "):
        ulak("jobs", "cancel", "7", *waiting)
    assert ulak("jobs", "show", waiting[0], "--json")["status"] == "cancelled"


def test_a_wrong_field_is_told_once_and_says_what_it_must_be(store, ulak):
    with pytest.raises(Invalid) as refused:
        ulak("jobs", "list", "--after", "2030-01-01T00:00:00")
    assert str(refused.value).count("acceptedAfter") == 1
    assert "must be an instant with a time zone, like 2027-01-01T09:00:00Z" in str(refused.value)


def test_events_are_printed_in_order(store, ulak):
    events = ulak("events", "--limit", "3", "--json")["events"]
    assert [event["seq"] for event in events] == [1, 2, 3]
    assert len(ulak("events", "--limit", "3").splitlines()) == 3


def test_keys_are_made_listed_and_revoked(ulak):
    made = ulak("keys", "create", "ops", "--scope", "admin", "--scope", "reveal", "--json")
    assert made["token"].startswith("ulak_")
    assert made["scopes"] == ["admin", "reveal"]
    assert "revokedAt" in ulak("keys", "list")
    ulak("keys", "revoke", made["id"])
    assert ulak("keys", "list", "--json")["keys"][0]["revokedAt"] is not None
    with pytest.raises(Error, match="no scope 'everything'"):
        ulak("keys", "create", "ops", "--scope", "everything")


def test_a_check_accounts_for_every_job(store, ulak):
    assert "in order: 1 unfinished" in ulak("db", "check")


def test_breakers_are_listed_and_a_missing_one_is_told(store, ulak):
    assert ulak("breakers", "list", "--json") == {"breakers": []}
    with pytest.raises(Error, match="no open breaker"):
        ulak("breakers", "reset", "https://down.example")
    assert ulak("breakers", "reset", "--all", "--json") == {"reset": 0}


@pytest.mark.parametrize("destination", ["shop-a", "warehouseistanbu", "https://a.example"])
def test_a_breaker_is_reset_by_its_destination_or_its_id_whatever_they_look_like(ulak, destination):
    for named in ("destination", "id"):
        asyncio.run(broken(destination))
        (listed,) = ulak("breakers", "list", "--json")["breakers"]
        assert ulak("breakers", "reset", listed[named], "--json") == {"reset": 1}


async def broken(destination):
    async with Ulak(STORE, work=False) as made:
        await made.store.write(save_breakers, [Breaker(destination, "open", 10, 1, made.clock.now() + 60_000)])


def test_a_key_with_control_characters_is_told_before_it_is_sent(ulak):
    with pytest.raises(Misconfigured, match=r"client\.key has control characters"):
        ulak("jobs", "list", "--set", "client.url=http://127.0.0.1:1", "--set", "client.key=two\nlines")
    with pytest.raises(Error, match="does not answer"):  # the line's end of a file does no harm
        ulak("jobs", "list", "--set", "client.url=http://127.0.0.1:1", "--set", "client.key=ulak_1_2\n")


def test_a_server_that_is_not_there_is_told(ulak):
    with pytest.raises(Error, match="does not answer"):
        ulak("jobs", "list", "--set", "client.url=http://127.0.0.1:1")
    with pytest.raises(Error, match="http://"):
        ulak("jobs", "list", "--set", "client.url=somewhere")


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "show", ""],
        ["jobs", "show", ".."],
        ["jobs", "show", "\udcff"],
        ["jobs", "show", "1?reveal=true"],
        ["jobs", "cancel", "1/../2"],
        ["jobs", "list", "--kind", "\udcff"],
        ["dead", "list", "--contains", "\udcff"],
        ["dead", "edit", "1", "@missing.json"],
        ["dead", "edit", "1", "@."],
        ["dead", "drop", "../keys/0123456789"],
        ["keys", "revoke", ""],
        ["keys", "create", "\udcff", "--scope", "admin"],
        ["notify", "show", ""],
        ["jobs", "list", "--set", "client.url=http://[::1"],
        ["jobs", "list", "--set", "client.url=http://"],
        ["jobs", "list", "--set", "client.url=http://x:99999"],
    ],
    ids=" ".join,
)
def test_nonsense_is_an_error_of_ours_and_not_a_traceback(words, store, ulak):
    with pytest.raises(Error):
        ulak(*words)


def test_an_id_stays_one_part_of_the_path(store, ulak):
    """`..` in it must not reach another route: there it would end a key."""
    key = ulak("keys", "create", "ops", "--scope", "admin", "--json")["id"]
    with pytest.raises(Error):
        ulak("dead", "drop", f"../keys/{key}")
    assert ulak("keys", "list", "--json")["keys"][0]["revokedAt"] is None


@pytest.mark.parametrize(
    ("command", "known"),
    [
        (["jobs", "list", "--status", "foo"], "no status 'foo'; there are: ready, deferred"),
        (["dead", "list", "--error-class", "foo"], "error.?[cC]lass.*'?transient'?, '?permanent'?"),
        (["dead", "redrive", "--error-class", "foo"], "error.?[cC]lass.*'?transient'?, '?permanent'?"),
        (["notify", "list", "--status", "foo"], "DELIVERED"),
        (["notify", "list", "--type", "foo"], "EMAIL"),
    ],
)
def test_a_choice_that_does_not_exist_is_refused_with_those_that_do(store, ulak, command, known):
    with pytest.raises(Invalid, match=known):
        ulak(*command)


@pytest.mark.parametrize("command", [["dead", "redrive"], ["dead", "redrive", "--rate", "5"], ["breakers", "reset"]])
def test_who_names_nothing_is_told_of_the_option_for_all(store, ulak, command):
    with pytest.raises(Invalid, match="or give --all"):
        ulak(*command)


@pytest.mark.parametrize("option", [["--kind", "other"], ["--contains", "x"], ["--all"], ["--rate", "5"]], ids=" ".join)
def test_ids_beside_what_would_not_count_are_refused_and_nothing_goes(store, ulak, option):
    buried, _ = store
    with pytest.raises(Invalid, match="without a filter, --all or --rate"):
        ulak("dead", "redrive", *buried, *option)
    assert len(ulak("dead", "list", "--json")["dead"]) == 2


def test_tasks_that_were_submitted_are_listed(ulak, tmp_path):
    (tmp_path / "hello.py").write_text("print('hello')\n")
    task = ulak("compute", "submit", "hello.py", "--json", ULAK_COMPUTE__SCRIPT_ROOT=str(tmp_path))
    (listed,) = ulak("compute", "list", "--json")["items"]
    assert (listed["task_id"], listed["script_path"]) == (task["task_id"], "hello.py")


@pytest.mark.parametrize("verb", ["result", "cancel"])
@pytest.mark.parametrize("identifier", ["", "..", "a/b"])
def test_a_task_without_an_id_is_no_route(store, ulak, verb, identifier):
    with pytest.raises(Invalid, match=f"'{identifier}' is not an id; `list` shows which there are"):
        ulak("compute", verb, identifier)


@pytest.mark.parametrize("verb", ["cancel", "resend"])
def test_each_notification_is_asked_for_whatever_becomes_of_the_others(store, ulak, verb):
    missing = ["00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"]
    with pytest.raises(Invalid, match=f"done for 0 of 2, but not for {missing[0]}.*{missing[1]}"):
        ulak("notify", verb, *missing)


@pytest.mark.parametrize("command", [["jobs", "list"], ["db", "migrate"], ["db", "hold"]], ids=" ".join)
def test_a_database_that_does_not_answer_is_told_with_what_to_check(ulak, command):
    with pytest.raises(Unavailable, match=r"can't be reached \(.*port 1 .*; check its address, and that it runs"):
        ulak(*command, "--set", "store=postgresql://127.0.0.1:1/ulak")
