"""Lists of one's own: CSV, JSON lines and XML."""

from __future__ import annotations

import gzip
import io
import json

import pytest

from tests.changes.shelf import Shelf
from ulak.changes.sources.contract import check_source
from ulak.changes.sources.source import BadRecord, Opened, Unfit
from ulak.changes.sources.table import TableSource
from ulak.changes.sources.unpack import MAX_BYTES, unpacked

COLUMNS = {"title": "name", "city": "town"}
CSV = TableSource("shops", "csv", "id", COLUMNS)
JSONL = TableSource("shops", "jsonl", "id", COLUMNS)
XML = TableSource("shops", "xml", "@id", {"title": "name", "city": "address/town"}, record="shop")


def records(source, content: bytes):
    opened = Opened(io.BytesIO(content), "list")
    parsed = [source.parse("list", block) for batch in source.blocks("list", opened) for block in batch]
    return {one.identifier: one.parts["shops"] for one in parsed}


WANTED = {"01": {"title": 'Işık, "A"', "city": "İzmir"}, "02": {"title": "B", "city": None}}


def test_csv_with_quotes_commas_and_line_ends():
    content = 'id,town,name\r\n01,İzmir,"Işık, ""A"""\r\n02,,B\r\n'.encode()
    assert records(CSV, content) == WANTED | {"02": {"title": "B", "city": ""}}
    assert records(CSV, b'id,town,name\n1,x,"a\nb"\n') == {"1": {"title": "a\nb", "city": "x"}}


def test_csv_in_another_encoding_and_with_another_delimiter():
    source = TableSource("shops", "csv", "id", COLUMNS, delimiter=";", encoding="windows-1254")
    assert records(source, "id;name;town\n1;Şişli;İst\n".encode("windows-1254")) == {
        "1": {"title": "Şişli", "city": "İst"}
    }


@pytest.mark.parametrize("encoding", ["windows-1254", "utf-16", "iso-8859-9"])
@pytest.mark.parametrize("declared", [True, False])
def test_xml_in_another_encoding(encoding, declared):
    source = TableSource("shops", "xml", "@id", {"title": "name"}, record="shop", encoding=encoding)
    prolog = f'<?xml version="1.0" encoding="{encoding.upper()}"?>' if declared else ""
    content = f'{prolog}<list><shop id="1"><name>Şişli & Işık</name></shop></list>'.replace("&", "&amp;")
    assert records(source, content.encode(encoding)) == {"1": {"title": "Şişli & Işık"}}


def test_xml_that_declares_another_encoding_than_the_settings_is_unfit():
    source = TableSource("shops", "xml", "@id", {"title": "name"}, record="shop", encoding="windows-1254")
    with pytest.raises(Unfit, match="its encoding is UTF-8, not WINDOWS-1254"):
        records(source, b'<?xml version="1.0" encoding="UTF-8"?><list><shop id="1"><name>A</name></shop></list>')
    with pytest.raises(Unfit, match="not utf-16"):
        records(TableSource("shops", "xml", "@id", {"title": "name"}, record="shop", encoding="utf-16"), b"<list>")


def test_another_encoding_reads_the_same_bytes_in_another_way():
    versions = {TableSource("shops", "csv", "id", COLUMNS, encoding=one).version for one in ("utf-8", "iso-8859-9")}
    assert len(versions) == 2


def test_json_lines():
    lines = ['{"id":"01","name":"Işık, \\"A\\"","town":"İzmir"}', "", '{"id":"02","name":"B"}']
    assert records(JSONL, "\n".join(lines).encode()) == WANTED


def test_json_numbers_and_nested_values_are_text():
    assert records(JSONL, b'{"id":7,"name":1.5,"town":{"a":[1]}}') == {"7": {"title": "1.5", "city": '{"a":[1]}'}}


def test_xml_with_attributes_and_paths():
    content = (
        '<list><shops><shop id="01"><name>Işık, "A"</name><address><town>İzmir</town></address></shop>'
        '<shop id="02"><name>B</name></shop></shops></list>'
    )
    assert records(XML, content.encode()) == WANTED


@pytest.mark.parametrize(
    ("source", "content"),
    [
        (CSV, b""),
        (CSV, b"id,name,town\n"),
        (CSV, b"id,name\n1,a\n"),
        (CSV, b'id,name,town\n1,"a,b\n'),
        (CSV, "id,name,town\n1,ş,x\n".encode("iso-8859-9")),
        (JSONL, b"\n\n"),
        (XML, b"<list></list>"),
        (XML, b'<list><shop id="1"><name>a</name></shop>'),
    ],
)
def test_what_is_no_such_list_is_unfit(source, content):
    with pytest.raises(Unfit):
        records(source, content)


def test_a_table_is_compared_like_any_list(tmp_path):
    shelf = Shelf(tmp_path / "work", CSV)
    path = tmp_path / "shops.csv"
    path.write_text("id,name,town\n1,a,x\n2,b,y\n")
    shelf.take({"list": path})
    path.write_text("id,name,town\n1,a,z\n3,c,y\n")
    (deltas,) = shelf.take({"list": path}).values()
    assert {(delta.key[2:], delta.change) for delta in deltas} == {("1", 2), ("2", 3), ("3", 1)}
    assert json.loads(next(delta.body for delta in deltas if delta.change == 1)) == {"title": "c", "city": "y"}
    assert sum(one.parsed for one in shelf.last_read) == 2


def test_a_packed_table(tmp_path):
    source = TableSource("shops", "jsonl", "id", COLUMNS, compression="gzip")
    path = tmp_path / "shops.gz"
    path.write_bytes(gzip.compress(b'{"id":"1","name":"a"}'))
    shelf = Shelf(tmp_path / "work", source)
    shelf.take({"list": path})
    assert shelf.identifiers("shops") == {"1"}
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(Unfit, match="truncated"):
        shelf.take({"list": path})


def test_a_list_that_unpacks_to_too_many_bytes_is_a_bomb_whatever_its_ratio(tmp_path):
    assert MAX_BYTES == 4 * 1024**3
    path = tmp_path / "shops.csv"
    path.write_text("id,name,town\n1,a,x\n")
    with unpacked(path, "none", ".csv", limit=10) as opened, pytest.raises(Unfit, match="bomb"):
        opened.stream.read()


@pytest.mark.parametrize(
    ("source", "content"),
    [
        (CSV, "id,name,town\n1,a,x\n2,b,y\n"),
        (JSONL, '{"id":"1","name":"a"}\n{"id":"2","name":"b"}'),
        (XML, '<list><shop id="1"><name>a</name></shop><shop id="2"/></list>'.replace("/></", "></shop></")),
    ],
)
def test_the_built_in_sources_keep_the_contract(tmp_path, source, content):
    path = tmp_path / "shops"
    path.write_text(content)
    assert check_source(source, {"list": path}) == 2


def test_gibs_source_keeps_the_contract(tmp_path):
    from ulak.changes.generator import Plan, write_lists
    from ulak.changes.sources.gib import GibSource

    assert check_source(GibSource(), write_lists(tmp_path, Plan(200))) > 200


@pytest.mark.parametrize(
    ("source", "block"),
    [
        (CSV, b'["1","a"]'),
        (CSV, b'["1","a","x","y"]'),
        (JSONL, b'{"id":"1","name":"a\\u0000"}'),
        (JSONL, b'{"id":"1\\u0001","name":"a"}'),
        (JSONL, b'{"id":"1","name":"\\ud800"}'),
        (JSONL, b'{"id":"1","name":"\\uffff"}'),
    ],
)
def test_a_row_that_no_feed_can_carry_is_a_bad_record(source, block):
    with pytest.raises(BadRecord):
        source.parse("list", block)


def test_a_row_of_csv_with_another_number_of_columns_is_not_taken_for_a_record(tmp_path):
    path = tmp_path / "shops.csv"
    path.write_text("id,name,town\n1,a,x\n2")
    with pytest.raises(Unfit, match="another number of columns"):
        Shelf(tmp_path / "work", CSV).take({"list": path})


LINES = {"name": "lines", "format": "jsonl", "key": "id", "fields": {"title": "n"}}


@pytest.mark.parametrize("odd", [{"id": "7", "n": "a\x00"}, {"id": "7" * 4000, "n": "a"}])
async def test_a_record_that_no_store_takes_is_counted_and_the_others_are_published(make, tmp_path, odd):
    path = tmp_path / "lines.jsonl"
    rows = [{"id": f"{number}", "n": "ad"} for number in range(1000, 2000)]
    path.write_text("\n".join(json.dumps(row) for row in [*rows, odd]))
    async with make(changes__registry=({**LINES, "url": path.as_uri()},)) as desk:
        report = await desk.sync("lines")
        assert (report.status, report.feeds["lines"].added) == ("success", 1000)
