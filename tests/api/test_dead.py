"""Dead letters over HTTP: browse, mend, send again, drop."""

from __future__ import annotations

import asyncio

import pytest

from tests.api.serving import serving, with_deaths
from ulak import codec
from ulak.errors import Invalid
from ulak.spine.units import dead_letters
from ulak.spine.units.dead_letters import ERROR_CLASSES, Filter


async def bury(served, number=1, kind="doomed"):
    ids = [await served.enqueue(kind, {"to": f"user{each}@example.com"}) for each in range(number)]
    for identifier in ids:
        await served.settled(identifier, "dead")
    return ids


@pytest.fixture
async def served():
    async with serving(with_deaths) as served:
        yield served


async def test_dead_letters_are_listed_oldest_first_with_their_cause(served):
    ids = await bury(served, 3)
    first = (await served.get("/api/dead?limit=2")).body
    assert [one["id"] for one in first["dead"]] == ids[:2]
    assert first["dead"][0]["errorClass"] == "permanent"
    assert "no mailbox for" in first["dead"][0]["cause"]
    rest = (await served.get(f"/api/dead?limit=2&after={first['after']}")).body
    assert [one["id"] for one in rest["dead"]] == ids[2:]
    assert rest["after"] is None


async def test_a_page_of_large_letters_is_short_and_the_next_goes_on_from_it(served, monkeypatch):
    ids = await bury(served, 5)
    one = len(codec.encode({"to": "user0@example.com"}))
    monkeypatch.setattr(dead_letters, "PAGE_BYTES", 2 * one)
    pages, after = [], "0"
    while after is not None:
        page = (await served.get(f"/api/dead?after={after}")).body
        pages.append([letter["id"] for letter in page["dead"]])
        after = page["after"]
    assert pages == [ids[:2], ids[2:4], ids[4:]]
    monkeypatch.setattr(dead_letters, "PAGE_BYTES", one - 1)  # a letter that is too large by itself is still shown
    alone = (await served.get("/api/dead")).body
    assert ([letter["id"] for letter in alone["dead"]], alone["after"]) == (ids[:1], ids[0])


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kind=doomed", 2),
        ("kind=other", 0),
        ("errorClass=permanent", 2),
        ("errorClass=poison", 0),
        ("contains=mailbox", 2),
        ("contains=postbox", 0),
        ("diedBefore=2020-01-01T00:00:00Z", 0),
        ("diedAfter=2020-01-01T00:00:00Z", 2),
    ],
)
async def test_dead_letters_are_filtered(served, query, found):
    await bury(served, 2)
    assert len((await served.get(f"/api/dead?{query}")).body["dead"]) == found


async def test_a_mended_letter_goes_back_with_its_new_payload(served):
    (identifier,) = await bury(served)
    assert (await served.ask("PUT", f"/api/dead/{identifier}/payload", {"to": "right@example.com"})).status == 204
    answer = await served.post("/api/dead/redrive", {"ids": [identifier]})
    assert answer.body == {"matched": 1, "redriven": 1, "ids": [identifier], "continues": False}
    job = await served.settled(identifier, "dead")
    assert [entry["word"] for entry in job["timeline"]].count("redriven") == 1
    assert (await served.get(f"/api/jobs/{identifier}?reveal=true")).body["payload"] == {"to": "right@example.com"}


async def test_a_dry_run_sends_nothing(served):
    ids = await bury(served, 2)
    answer = await served.post("/api/dead/redrive", {"kind": "doomed", "dryRun": True})
    assert answer.body == {"matched": 2, "redriven": 0, "ids": ids, "continues": False}
    assert len((await served.get("/api/dead")).body["dead"]) == 2
    by_id = await served.post("/api/dead/redrive", {"ids": [ids[0], "1"], "dryRun": True})
    assert by_id.body["ids"] == ids[:1]


async def test_all_that_fit_go_back(served):
    ids = await bury(served, 3)
    answer = await served.post("/api/dead/redrive", {"contains": "user1"})
    assert answer.body["ids"] == []  # causes are kept masked, so a name is not found in them
    assert (await served.post("/api/dead/redrive", {"all": True})).body["ids"] == ids


async def test_at_a_rate_they_go_on_after_the_answer(served):
    (identifier,) = await bury(served)
    answer = await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": 1000})
    assert answer.body["continues"]
    with served.ulak.loops.watching() as news:
        while (await served.ulak.jobs.tally())["doomed"].get("redriven") != 1:
            news.clear()
            await news.wait()
    assert (await served.get(f"/api/jobs/{identifier}")).status == 200


async def test_one_redrive_at_a_rate_goes_at_a_time_and_ends_with_the_door():
    async with serving(with_deaths) as served:
        await bury(served, 2)
        assert (await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": 0.01})).body["continues"]
        (task,) = [task for task in asyncio.all_tasks() if task.get_name() == "ulak-redrive"]
        again = await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": 100})
        assert again.status == 409
        assert "under way" in again.body["message"]
        assert (await served.post("/api/dead/redrive", {"all": True, "dryRun": True})).status == 200
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_redrive_at_a_rate_may_follow_one_that_has_ended(served):
    for _ in range(2):
        assert (await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": 1000})).status == 200
        await asyncio.gather(*[task for task in asyncio.all_tasks() if task.get_name() == "ulak-redrive"])


@pytest.mark.parametrize("rate", [1e-9, 0.0099])
async def test_a_rate_that_would_never_end_is_refused(served, rate):
    answer = await served.post("/api/dead/redrive", {"all": True, "ratePerSecond": rate})
    assert answer.status == 400
    assert [one["field"] for one in answer.body["fields"]] == ["ratePerSecond"]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "besides", [{"kind": "other"}, {"diedAfter": "2027-01-01T00:00:00Z"}, {"all": True}, {"ratePerSecond": 1}]
)
async def test_ids_beside_what_would_not_count_are_refused(shared, besides):
    refused = await shared.post("/api/dead/redrive", {"ids": ["1"], **besides})
    assert refused.status == 400
    assert refused.body["fields"] == [
        {"field": "ids", "message": "can't be given beside a filter, all or ratePerSecond"}
    ]


@pytest.mark.parametrize(
    "body", [{}, {"dryRun": True}, {"ids": ["x"]}, {"all": True, "ratePerSecond": 0}, {"diedBefore": "2020-01-01"}, []]
)
async def test_a_redrive_must_say_what_it_wants(served, body):
    assert (await served.post("/api/dead/redrive", body)).status == 400


async def test_a_dropped_letter_is_gone(served):
    (identifier,) = await bury(served)
    assert (await served.ask("DELETE", f"/api/dead/{identifier}")).status == 204
    assert (await served.ask("DELETE", f"/api/dead/{identifier}")).status == 404
    assert (await served.ask("PUT", f"/api/dead/{identifier}/payload", {})).status == 404


@pytest.mark.asyncio(loop_scope="module")
async def test_an_error_class_that_is_none_is_answered_with_those_that_are(shared):
    listed = await shared.get("/api/dead?errorClass=foo")
    redriven = await shared.post("/api/dead/redrive", {"errorClass": "foo"})
    for answer in (listed, redriven):
        assert answer.status == 400
        (told,) = answer.body["fields"]
        assert told["field"] == "errorClass"
        assert all(name in told["message"] for name in ERROR_CLASSES)


@pytest.mark.asyncio(loop_scope="module")
async def test_python_names_the_error_classes_too(shared):
    with pytest.raises(Invalid, match="no error class 'foo'; there are: transient, permanent"):
        await shared.ulak.jobs.find_dead(Filter(error_class="foo"))


async def test_what_people_do_with_dead_letters_is_audited(served):
    one, two, three = await bury(served, 3)
    await served.ask("PUT", f"/api/dead/{one}/payload", {"to": "nobody"})
    await served.ask("DELETE", f"/api/dead/{one}")
    await served.post("/api/dead/redrive", {"ids": [two, three], "dryRun": True})
    await served.post("/api/dead/redrive", {"ids": [two, three]})
    lines = (await served.get("/api/audit?verb=dead")).body["items"]
    assert [(line["verb"], line["object"]) for line in lines] == [
        ("dead.redrive", "2 dead letters"),
        ("dead.drop", one),
        ("dead.edit", one),
    ]
    assert lines[0]["detail"] == {"ids": [two, three]}
    assert "nobody" not in str(lines)  # what a letter says is not told here


async def test_a_redrive_of_all_is_audited_with_who_asked_for_it(served):
    ids = await bury(served, 2)
    assert (await served.post("/api/dead/redrive", {"all": True})).body["redriven"] == 2
    (line,) = (await served.get("/api/audit?verb=dead.redrive")).body["items"]
    assert (sorted(line["detail"]["ids"]), bool(line["who"])) == (sorted(ids), True)
