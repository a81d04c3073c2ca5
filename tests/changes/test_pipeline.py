"""What is read as a difference equals what is read whole, whatever happens to the lists."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.changes.lists import Alias, User, document, invoice, simple, write_lists, write_zip
from tests.changes.shelf import Shelf
from ulak.changes.generator import Plan
from ulak.changes.generator import write_lists as make_up
from ulak.changes.pipeline.fingerprints import Binding, open_fingerprints, write_fingerprints
from ulak.changes.sources.source import Unfit
from ulak.changes.state import bucket_of


def changes(deltas) -> set[tuple[str, int]]:
    return {(delta.key[2:], delta.change) for delta in deltas}


def test_a_list_is_read_as_a_difference_after_the_first(tmp_path):
    shelf = Shelf(tmp_path / "work")
    shelf.take(make_up(tmp_path / "a", Plan(300, 0)))
    shelf.take(make_up(tmp_path / "b", Plan(300, 1, 0.05)))
    assert sum(one.parsed for one in shelf.last_read) < 60
    whole = Shelf(tmp_path / "whole")
    whole.take(make_up(tmp_path / "b", Plan(300, 1, 0.05)))
    assert shelf.state() == whole.state()


def test_additions_modifications_and_removals_are_told_apart(tmp_path):
    shelf = Shelf(tmp_path / "work")
    shelf.take(write_lists(tmp_path, [invoice("1", "a"), invoice("2", "b")], [invoice("1", "g")]))
    deltas = shelf.take(write_lists(tmp_path, [invoice("1", "x"), invoice("3", "c")], [invoice("1", "g")]))
    assert changes(deltas["einvoice"]) == {("1", 2), ("2", 3), ("3", 1)}
    assert deltas["edespatch"] == []


def test_the_other_files_part_is_kept_when_one_file_changes(tmp_path):
    shelf = Shelf(tmp_path / "work")
    gb = [invoice("1", "g", title="GB UNVAN", first="2010-01-01T00:00:00")]
    shelf.take(write_lists(tmp_path, [invoice("1", "a", title="PK UNVAN")], gb))
    (delta,) = shelf.take(write_lists(tmp_path, [invoice("1", "b", title="AA")], gb))["einvoice"]
    fields = json.loads(delta.body)
    assert [alias["alias"] for alias in fields["aliases"]] == ["b", "g"]
    assert fields["title"] == "GB UNVAN"


@pytest.mark.parametrize(
    ("then", "why"),
    [
        ([], "left-list"),
        ([User("1", documents={"Invoice": [Alias("a", deleted="2024-01-01T00:00:00")]})], "no-active-alias"),
        ([User("1", documents={"DespatchAdvice": [Alias("a")]})], "document-type-dropped"),
    ],
)
@pytest.mark.parametrize("caches", [True, False])
def test_a_removal_says_why(tmp_path, then, why, caches):
    shelf = Shelf(tmp_path / "work", caches=caches)
    rest = [invoice("9", "z")]
    shelf.take(write_lists(tmp_path, [invoice("1", "a"), *rest], rest))
    (delta,) = shelf.take(write_lists(tmp_path, [*then, *rest], rest))["einvoice"]
    assert json.loads(delta.parts) == {"reason": why}


def test_a_changed_order_and_changed_tombstones_change_nothing(tmp_path):
    shelf = Shelf(tmp_path / "work")
    pk, gb = simple(range(1, 40))
    shelf.take(write_lists(tmp_path, pk, gb))
    dead = Alias("old", deleted="2024-01-01T00:00:00")
    mixed = [
        User(user.identifier, user.title, documents={**user.documents, "Invoice": [dead, *user.documents["Invoice"]]})
        for user in reversed(pk)
    ]
    deltas = shelf.take(write_lists(tmp_path, mixed, gb))
    assert deltas == {"einvoice": [], "edespatch": []}


def test_two_blocks_of_one_identifier_are_one_record(tmp_path):
    shelf = Shelf(tmp_path / "work")
    shelf.take(write_lists(tmp_path, [invoice("1", "a"), invoice("1", "b"), invoice("2", "c")], [invoice("1", "g")]))
    assert shelf.last_diff.duplicates == 1
    assert shelf.identifiers() == {"1", "2"}
    (delta,) = shelf.take(
        write_lists(tmp_path, [invoice("1", "a"), invoice("1", "B"), invoice("2", "c")], [invoice("1", "g")])
    )["einvoice"]
    assert [alias["alias"] for alias in json.loads(delta.body)["aliases"]] == ["B", "a", "g"]
    assert shelf.fell_back == 0


def test_an_identifier_that_comes_to_have_a_second_block_is_read_whole(tmp_path):
    shelf = Shelf(tmp_path / "work")
    gb = [invoice("9", "z")]
    shelf.take(write_lists(tmp_path, [invoice("1", "a")], gb))
    (delta,) = shelf.take(write_lists(tmp_path, [invoice("1", "a"), invoice("1", "b")], gb))["einvoice"]
    assert shelf.fell_back == 1
    assert [alias["alias"] for alias in json.loads(delta.body)["aliases"]] == ["a", "b"]


def many_with(bad: bytes, *, count: int = 1500) -> bytes:
    good = document([invoice(f"{number:010d}", f"a{number}") for number in range(2, count)])
    return good.replace(b"</UserList>", bad + b"</UserList>")


@pytest.mark.parametrize("caches", [True, False])
def test_a_record_that_cant_be_read_is_carried_over_and_never_removed(tmp_path, caches):
    shelf = Shelf(tmp_path / "work", caches=caches)
    good, gb = invoice("0000000001", "first").xml().encode(), document([invoice("9", "z")])
    paths = {"PK": tmp_path / "pk.zip", "GB": write_zip(tmp_path / "gb.zip", "GB", gb)}
    write_zip(paths["PK"], "PK", many_with(good))
    shelf.take(paths)
    broken = good.replace(b"<Title>", b"<Title>&broken;")
    write_zip(paths["PK"], "PK", many_with(broken))
    assert shelf.take(paths)["einvoice"] == []
    assert shelf.last_diff.carried == 1
    write_zip(paths["PK"], "PK", many_with(b""))
    assert changes(shelf.take(paths)["einvoice"]) == {("0000000001", 3)}


@pytest.mark.parametrize("caches", [True, False])
def test_a_record_that_came_back_readable_is_compared_again(tmp_path, caches):
    shelf = Shelf(tmp_path / "work", caches=caches)
    good, gb = invoice("0000000001", "first").xml().encode(), document([invoice("9", "z")])
    paths = {"PK": tmp_path / "pk.zip", "GB": write_zip(tmp_path / "gb.zip", "GB", gb)}
    for content in (good, good.replace(b"<Title>", b"<Title>&broken;")):
        write_zip(paths["PK"], "PK", many_with(content))
        shelf.take(paths)
    write_zip(paths["PK"], "PK", many_with(good.replace(b"<Name>first", b"<Name>second")))
    assert changes(shelf.take(paths)["einvoice"]) == {("0000000001", 2)}


def test_with_a_nameless_broken_record_nobody_is_removed(tmp_path):
    shelf = Shelf(tmp_path / "work")
    good, gb = invoice("0000000001", "first").xml().encode(), document([invoice("9", "z")])
    paths = {"PK": tmp_path / "pk.zip", "GB": write_zip(tmp_path / "gb.zip", "GB", gb)}
    write_zip(paths["PK"], "PK", many_with(good))
    shelf.take(paths)
    write_zip(paths["PK"], "PK", many_with(b"<User><Title>who?</Title></User>"))
    assert shelf.take(paths)["einvoice"] == []
    write_zip(paths["PK"], "PK", many_with(b""))
    assert changes(shelf.take(paths)["einvoice"]) == {("0000000001", 3)}


def test_too_many_records_that_cant_be_read_make_a_list_unfit(tmp_path):
    content = many_with(b"<User><Title>who?</Title></User>" * 3)
    paths = {"PK": write_zip(tmp_path / "pk.zip", "PK", content), "GB": write_zip(tmp_path / "gb.zip", "GB", content)}
    with pytest.raises(Unfit, match=r"PK: 3 of 1501 records can't be read, more than 0.1%"):
        Shelf(tmp_path / "work").take(paths)


def test_withheld_removals_are_found_again_by_the_next_list(tmp_path):
    shelf = Shelf(tmp_path / "work")
    pk, gb = simple(range(1, 11))
    shelf.take(write_lists(tmp_path, pk, gb))
    shelf.take(write_lists(tmp_path, pk[5:], gb[5:]), withhold=True)
    assert len(shelf.identifiers()) == 10
    again = shelf.take(write_lists(tmp_path, pk[5:], gb[5:]))
    assert len(again["einvoice"]) == 5
    assert len(shelf.identifiers()) == 5


def test_memory_holds_a_batch_and_the_rest_is_spilled(tmp_path):
    small, large = Shelf(tmp_path / "small", batch=100), Shelf(tmp_path / "large")
    paths = make_up(tmp_path / "lists", Plan(950))
    small.take(paths)
    large.take(paths)
    assert max(map(len, small.last_read[0].spill.frames.values())) > 1
    assert small.state() == large.state()


def test_a_damaged_cache_is_not_used(tmp_path):
    shelf = Shelf(tmp_path / "work")
    pk, gb = simple(range(1, 40))
    shelf.take(write_lists(tmp_path, pk, gb))
    for path in shelf._old.values():
        Path(path).write_bytes(b"not a cache")
    deltas = shelf.take(write_lists(tmp_path, pk[1:], gb[1:]))
    assert all(one.whole for one in shelf.last_read)
    assert changes(deltas["einvoice"]) == {("0000000001", 3)}


numbers = st.integers(1, 12)
entries = st.builds(
    lambda number, title, document, live, again: User(
        f"{number:010d}",
        title,
        documents={
            name: [Alias(f"{number}{again}", deleted=None if live else "2024-01-01T00:00:00")] for name in document
        },
    ),
    numbers,
    st.sampled_from(["A", "B", "C"]),
    st.sampled_from([("Invoice",), ("DespatchAdvice",), ("Invoice", "DespatchAdvice"), ()]),
    st.booleans(),
    st.sampled_from(["", "x"]),
)
files = st.lists(entries, min_size=1, max_size=14)


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(st.lists(st.tuples(files, files), min_size=2, max_size=6), st.data())
def test_any_row_of_lists_read_as_differences_equals_the_last_one_read_whole(lists, data):
    folder = Path(tempfile.mkdtemp())
    try:
        shelf = Shelf(folder / "work", batch=5)
        for number, (pk, gb) in enumerate(lists):
            last = number == len(lists) - 1
            shelf.take(write_lists(folder, pk, gb), withhold=not last and data.draw(st.booleans()))
        whole = Shelf(folder / "whole")
        whole.take(write_lists(folder, *lists[-1]))
        assert shelf.state() == whole.state()
    finally:
        shutil.rmtree(folder)


def test_buckets_are_filled_evenly():
    counts = [0] * 256
    for number in range(25_600):
        counts[bucket_of(f"{number:010d}")] += 1
    assert 50 < min(counts) <= max(counts) < 160


def test_a_part_that_changed_behind_the_same_record_is_not_forgotten(tmp_path):
    """PK's title changes below GB's, so the record stays; then GB's changes, and PK's is the larger."""
    shelf = Shelf(tmp_path / "work")

    def titled(pk, gb):
        return write_lists(tmp_path, [invoice("1", "p", title=pk)], [invoice("1", "g", title=gb)])

    shelf.take(titled("C", "C"))
    assert shelf.take(titled("B", "C"))["einvoice"] == []
    (delta,) = shelf.take(titled("B", "A"))["einvoice"]
    assert json.loads(delta.body)["title"] == "B"


def test_an_engines_process_loads_neither_the_settings_nor_an_http_client():
    steps = "collector differ keeper reader"
    modules = [f"ulak.changes.pipeline.{step}" for step in steps.split()] + ["ulak.changes.archive"]
    code = f"import sys, {', '.join(modules)}; print([n for n in ('pydantic', 'aiohttp') if n in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, timeout=60)
    assert told.stdout.strip() == "[]"


def test_a_cache_of_another_sync_is_closed_and_not_used(tmp_path):
    path = tmp_path / "PK-1.fp"
    assert write_fingerprints(path, Binding("epoch", 1, "v"), [(9, "b"), (3, "a")]) == 2
    assert open_fingerprints(path, Binding("epoch", 2, "v")) is None
    with open_fingerprints(path, Binding("epoch", 1, "v")) as known:
        assert list(known.vanished()) == ["a", "b"]
    assert [one.name for one in tmp_path.iterdir()] == ["PK-1.fp"]


def test_a_cache_that_is_cut_off_anywhere_is_not_used(tmp_path):
    path, binding = tmp_path / "PK-1.fp", Binding("epoch", 1, "v")
    write_fingerprints(path, binding, [(9, "b"), (3, "a")])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert open_fingerprints(path, binding) is None
