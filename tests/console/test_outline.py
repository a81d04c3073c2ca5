"""The outline under dispatch's map: lines and areas are read, and a file that is none is refused with the reason."""

from __future__ import annotations

import json

import pytest

from tests.api.serving import serving
from ulak.console.outline import MAX_BYTES, MAX_POINTS, read_outline
from ulak.errors import Misconfigured

COAST = [[29.0, 40.98], [29.05, 40.98], [29.05, 41.0], [29.0, 40.98]]


def geometry(kind, coordinates):
    return {"type": kind, "coordinates": coordinates}


def written(folder, document):
    file = folder / "coast.geojson"
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return file


@pytest.mark.parametrize(
    "document",
    [
        geometry("LineString", COAST),
        geometry("Polygon", [COAST]),
        geometry("MultiPolygon", [[COAST]]),
        {"type": "Feature", "geometry": geometry("MultiLineString", [COAST])},
        {"type": "FeatureCollection", "features": [{"type": "Feature", "geometry": geometry("Polygon", [COAST])}]},
        {"type": "GeometryCollection", "geometries": [geometry("Point", [29, 41]), geometry("LineString", COAST)]},
    ],
    ids=lambda one: one["type"],
)
def test_lines_and_areas_are_read(tmp_path, document):
    assert read_outline(written(tmp_path, document)) == ("", ((tuple((lat, lon) for lon, lat in COAST), "outline"),))


def test_a_feature_says_how_it_looks_and_an_unknown_look_is_a_plain_outline(tmp_path):
    features = [
        {"type": "Feature", "properties": {"look": look}, "geometry": geometry("LineString", COAST)}
        for look in ("water", "main", "<b>", None)
    ]
    found = read_outline(written(tmp_path, {"type": "FeatureCollection", "name": "Masalköy", "features": features}))
    assert (found.name, [line.look for line in found.lines]) == ("Masalköy", ["water", "main", "outline", "outline"])


@pytest.mark.parametrize(
    ("document", "why"),
    [
        ("not json", "is not GeoJSON"),
        ({"type": "Circle"}, "is not GeoJSON"),
        ([], "is not GeoJSON"),
        (geometry("LineString", [[200, 41], [29, 41]]), "is not GeoJSON"),
        (geometry("LineString", [["a", 41]]), "is not GeoJSON"),
        (geometry("LineString", [[29, 41]] * (MAX_POINTS + 1)), "has 5,001 points"),
        (" " * (MAX_BYTES + 1), "has more than 1,048,576 bytes"),
    ],
    ids=["text", "kind", "list", "degrees", "letters", "points", "bytes"],
)
def test_another_file_is_refused_with_the_reason(tmp_path, document, why):
    with pytest.raises(Misconfigured, match=rf"console.outline: .*coast.geojson {why}"):
        read_outline(written(tmp_path, document))


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(Misconfigured, match="can't be read"):
        read_outline(tmp_path / "none.geojson")


async def test_the_map_has_the_outline_under_it(tmp_path):
    file = written(tmp_path, geometry("Polygon", [COAST]))
    async with serving(**{"console.outline": str(file)}) as served:
        await served.ulak.dispatch.put_helper("ayse", name="Ayse", latitude=40.99, longitude=29.029)
        assert '<path class="outline" d="M' in (await served.get("/console/dispatch")).text
