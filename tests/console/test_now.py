"""The overview's sentence for each room, the chips' numbers, and the bars of syncs."""

from __future__ import annotations

import re

import pytest

from tests.api.serving import serving
from tests.browser.town import settings_of
from ulak.clock import to_datetime
from ulak.console.bars import BASE, TALL, draw_syncs
from ulak.console.now import now_of
from ulak.console.page import Found
from ulak.console.words import Say
from ulak.spine.breaker import Breaker, save_breakers

NOW = 1_800_000_000_000
IDLE = {"waiting": 0, "running": 0, "dead": 0, "kinds": {}}


def looking(language="en", **documents):
    return Found(documents, {}, {}, {}, to_datetime(NOW), to_datetime(NOW).tzinfo, Say(language), None)


def told(name, room, language="en", **documents):
    return re.sub(r"<[^>]+>", "", str(now_of(name, {**IDLE, **room}, looking(language, **documents))))


@pytest.mark.parametrize(
    ("name", "room", "english", "turkish"),
    [
        ("notify", {}, "Nothing waits, nothing runs", "Bekleyen de çalışan da yok"),
        ("notify", {"dead": 12}, "12 dead", "12 ölü"),
        (
            "notify",
            {"waiting": 3, "running": 1, "kinds": {"notify.sms": {"running": 1, "deferred": 2, "behind": 1}}},
            "1 under way; 3 wait",
            "1 iş yolda; 3 iş bekliyor",
        ),
        ("dispatch", {}, "Nobody waits for an answer", "Yanıt bekleyen yok"),
        (
            "dispatch",
            {"waiting": 5, "kinds": {"dispatch.expire": {"deferred": 5, "oldestAt": NOW + 41_000}}},
            "5 tasks wait for an answer; next deadline in 0:41",
            "5 görev yanıt bekliyor; ilk süre 0:41 sonra doluyor",
        ),
        ("compute", {"waiting": 3}, "3 scripts wait", "3 betik bekliyor"),
        ("compute", {"running": 1}, "1 script runs", "1 betik çalışıyor"),
        ("changes", {}, "No list was read yet", "Henüz liste okunmadı"),
        (
            "actions",
            {"waiting": 3, "running": 1, "kinds": {"actions.push": {"running": 1, "ready": 1, "deferred": 2}}},
            "2 steps are under way; 2 steps wait",
            "2 adım yürüyor; 2 adım bekliyor",
        ),
        ("actions", {}, "No plan is under way", "Yürüyen plan yok"),
        ("shop", {"waiting": 2, "kinds": {"shop.ship": {"deferred": 2}}}, "2 wait", "2 iş bekliyor"),
    ],
)  # fmt: skip
def test_a_room_has_a_sentence_in_both_languages(name, room, english, turkish):
    assert (told(name, room), told(name, room, "tr")) == (english, turkish)


def test_changes_name_first_the_list_that_waits_for_a_person():
    feeds = {"b": {"until": "2027-01-15T10:59:55"}}
    registries = {
        "a": {"lastSync": {"verdict": "unchanged", "status": "COMPLETED"}},
        "b": {"lastSync": {"verdict": "published", "status": "COMPLETED", "feeds": feeds}},
        "c": {"lastSync": {"verdict": "quarantined", "status": "COMPLETED"}},
        "d": {"lastSync": None},
    }  # fmt: skip
    status = {"/api/v1/status": {"registries": registries}}
    assert told("changes", {}, **status) == "c: a snapshot is held back; a: unchanged; 1 more list"
    del registries["a"], registries["c"]
    assert told("changes", {}, **status) == "b: published 5 s ago"


async def test_the_overview_tells_of_a_dark_destination_whose_messages_wait():
    async with serving() as served:
        until = served.ulak.clock.now() + 600_000
        await served.ulak.store.write(save_breakers, [Breaker("http://127.0.0.1:9", "open", 10, 1, until)])
        later = to_datetime(until).isoformat()
        body = {"notificationType": "SMS", "recipient": "+905551112233", "body": "x", "sendAt": later}
        await served.post("/api/notifications", body)
        await served.ulak.sampler.take()
        room = (await served.get("/api/overview")).body["rooms"]["notify"]
        assert room["kinds"] == {"notify.sms": {"deferred": 1, "oldestAt": until}}
        assert "1 destination is dark; 1 waits" in (await served.get("/console/?lang=en")).text
        shown = (await served.get("/console/jobs?lang=en")).text
        assert ">deferred 1</a>" in shown
        assert ">done</a>" in shown  # nobody knows how many a list would still show
        assert ">deferred</a>" in (await served.get("/console/jobs?lang=en&kind=notify.sms")).text


async def test_the_chips_of_dead_letters_have_the_numbers_of_their_causes():
    async with serving() as served:
        forbidden = {"notificationType": "WEBHOOK", "recipient": "http://10.0.0.1/a", "body": "x"}
        sent = await served.post("/api/notifications", forbidden)
        await served.settled(sent.body["id"], "dead")
        shown = (await served.get("/console/dead?lang=en")).text
        assert ">All 1</a>" in shown
        assert ">permanent 1</a>" in shown


def sync(verdict="published", **numbers):
    return {"syncId": "s", "verdict": verdict, "feeds": {"companies": numbers} if numbers else {}}


def test_syncs_that_published_nothing_have_empty_bars():
    assert [part["tall"] for bar in draw_syncs([sync(), sync()], looking())["bars"] for part in bar["parts"]] == [0] * 6


def test_one_sync_is_not_a_chart():
    assert draw_syncs([sync(added=3)], looking()) is None


def test_bars_stand_upon_one_another_and_a_huge_one_is_cut_off_with_its_number():
    newest_first = [sync("quarantined"), sync(added=2, modified=7, removed=1), sync(modified=5), sync(added=9000)]
    chart = draw_syncs(newest_first, looking())
    first, half, whole, held = chart["bars"]
    assert chart["label"] == "Changes per sync, the newest last: 9,000, 5, 10, 0"
    assert (first["note"], sum(part["tall"] for part in first["parts"])) == ("9,000, not drawn to scale", TALL)
    assert (half["note"], [part["tall"] for part in half["parts"]]) == ("", [0, TALL / 2, 0])
    assert [part["tall"] for part in whole["parts"]] == pytest.approx([TALL * 0.2, TALL * 0.7, TALL * 0.1], abs=0.06)
    assert whole["parts"][-1]["y"] == BASE - TALL
    assert (held["note"], held["parts"][0]["name"]) == ("held back", "hold")
    assert held["x"] + held["width"] < 100


async def test_the_page_of_changes_draws_its_syncs_with_the_table_below(tmp_path):
    async with serving(**settings_of(tmp_path)) as served:
        for title in ("Masal", "Kurgu"):
            (tmp_path / "companies.csv").write_text(f"vkn,title,city\n1,{title},Ankara\n", encoding="utf-8")
            await served.ulak.changes.sync("companies")
        shown = (await served.get("/console/changes?lang=en")).text
        assert 'aria-label="Changes per sync, the newest last: 1, 1"' in shown
