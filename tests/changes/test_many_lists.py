"""Many lists in a row: an archive and the log after it equal a list that is read whole, by state hash."""

from __future__ import annotations

import os
import random

import pytest

from tests.changes.lists import Alias, User, write_lists
from tests.changes.shelf import Shelf, hash_of
from ulak import codec
from ulak.changes.archive import read_archive
from ulak.changes.fields import record_hash
from ulak.changes.state import to_key

# A thousand on both stores: CHANGES_LISTS=1000 python -m pytest --timeout 3600 tests/changes/test_many_lists.py
LISTS = int(os.environ.get("CHANGES_LISTS", "60"))


def random_list(choose: random.Random, users: dict[int, User]) -> None:
    for _ in range(choose.randrange(1, 4)):
        number = choose.randrange(1, 60)
        if number in users and choose.random() < 0.3 and len(users) > 40:
            del users[number]
            continue
        live = choose.random() < 0.9
        aliases = [Alias(f"a{number}{choose.randrange(3)}", deleted=None if live else "2024-01-01T00:00:00")]
        documents = dict.fromkeys(choose.choice([("Invoice",), ("Invoice", "DespatchAdvice")]), aliases)
        users[number] = User(f"{number:010d}", f"UNVAN {choose.randrange(5)}", documents=documents)


@pytest.mark.slow
async def test_bootstrap_and_replay_equal_the_list_read_whole(make, tmp_path):
    choose = random.Random(5)
    pk: dict[int, User] = {}
    gb: dict[int, User] = {}
    async with make(changes__removal_percent=100) as desk:
        for _ in range(30):
            random_list(choose, pk)
            random_list(choose, gb)
        for number in range(LISTS):
            random_list(choose, choose.choice([pk, gb]))
            desk.lay(list(pk.values()), list(gb.values()))
            report = await desk.sync()
            assert report.status == "success", report
            if number == 5:
                row = await desk.room.feeds.archive("einvoice", None)
                rows = read_archive(await desk.room.storehouse.find("einvoice", row.name))
                _, head = next(rows)
                copy, cursor = dict(rows), head["cursor"]
        more = True
        while more:
            page = await desk.room.log("einvoice", cursor, 7)
            for version in page.versions:
                if version.body is None:
                    del copy[version.key[2:]]
                else:
                    copy[version.key[2:]] = codec.decode(version.body)
            cursor, more = str(page.cursor), page.more
        whole = Shelf(tmp_path / "whole")
        whole.take(write_lists(tmp_path / "again", list(pk.values()), list(gb.values())))
        replayed = hash_of((to_key(one), record_hash(one, fields)) for one, fields in copy.items())
        feed = await desk.state()
        assert copy == {key[2:]: codec.decode(row.body) for key, row in whole.published["einvoice"].items()}
        assert replayed == feed.state_hash == page.state_hash == whole.state()["einvoice"]
        assert (await desk.state("edespatch")).state_hash == whole.state()["edespatch"]
