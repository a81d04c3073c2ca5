"""A source of a plug-in is found by its entry point, and synced like any other."""

from __future__ import annotations

from ulak.changes.sources.contract import check_source
from ulak.changes.sources.table import TableSource

PLUGIN = """
from ulak.changes.registry import RegistryEntry
from ulak.changes.sources.table import TableSource

def shops(section):
    source = TableSource("shops", "csv", "id", {"title": "name"})
    return RegistryEntry("shops", source, {"list": FILE})

def nothing(section):
    return None
"""


def plug_in(tmp_path, monkeypatch, **points: str) -> None:
    info = tmp_path / "site" / "ulak_shops-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ulak-shops\nVersion: 1\n")
    told = "\n".join(f"{name} = {target}" for name, target in points.items())
    (info / "entry_points.txt").write_text(f"[ulak.sources]\n{told}\n")
    (tmp_path / "shops.csv").write_text("id,name\n1,Bir\n2,İki\n")
    place = f"FILE = {(tmp_path / 'shops.csv').as_uri()!r}\n"
    (info.parent / "ulak_shops_plugin.py").write_text(place + PLUGIN)
    monkeypatch.syspath_prepend(str(info.parent))


async def test_a_plugged_source_is_synced_like_any_other(tmp_path, monkeypatch, make):
    plug_in(tmp_path, monkeypatch, shops="ulak_shops_plugin:shops", other="ulak_shops_plugin:nothing")
    async with make() as desk:
        assert list(desk.room.registries.by_name) == ["gib", "shops"]
        report = await desk.sync("shops")
        assert (report.status, report.feeds["shops"].count) == ("success", 2)
        assert await desk.room.get("shops", "2") == {"identifier": "2", "title": "İki"}


def test_its_author_can_try_it_before(tmp_path):
    path = tmp_path / "shops.csv"
    path.write_text("id,name\n1,Bir\n2,İki\n")
    source = TableSource("shops", "csv", "id", {"title": "name"})
    assert check_source(source, {"list": path}, ".csv") == 2
